-- What a snapshot holds, in one row of counts.
SELECT
    (SELECT count(*) FROM models) AS models,
    (SELECT count(DISTINCT config_hash) FROM models) AS configurations,
    (SELECT count(*) FROM captures) AS captures,
    (SELECT count(*) FROM captures WHERE status = 'complete') AS complete,
    (SELECT count(*) FROM captures WHERE status = 'partial') AS partial,
    (SELECT count(*) FROM captures WHERE status = 'failed') AS failed,
    (SELECT count(*) FROM occurrences) AS occurrences,
    (SELECT count(*) FROM graphs) AS graphs,
    (SELECT count(DISTINCT structure_hash) FROM graphs) AS structures,
    (SELECT count(DISTINCT template_hash) FROM graphs) AS templates,
    (SELECT count(DISTINCT op_hash) FROM graphs) AS op_sequences,
    (SELECT coalesce(sum(node_count), 0)::BIGINT FROM graphs) AS nodes,
    (SELECT count(DISTINCT target) FROM nodes WHERE op IN ('call_function', 'call_method')) AS operators,
    (SELECT epoch_ms(max(started_at)) FROM timings) AS captured_ms
