-- FROM op_frequency() ORDER BY template_share DESC
-- calls and graphs count unique graphs once each; weighted_calls counts each template as one graph; calls_in_models
-- counts a graph as often as it occurs.
CREATE MACRO op_frequency() AS TABLE
WITH per_graph AS (
    SELECT graph_hash, target, count(*) AS calls
    FROM nodes
    WHERE op IN ('call_function', 'call_method')
    GROUP BY graph_hash, target
)
SELECT
    target,
    sum(calls)::BIGINT AS calls,
    count(*) AS graphs,
    round(sum(calls * weight), 3) AS weighted_calls,
    round(sum(weight) / nullif((SELECT sum(weight) FROM graph_weights), 0), 6) AS template_share,
    sum(calls * multiplicity)::BIGINT AS calls_in_models
FROM per_graph
JOIN graph_weights USING (graph_hash)
GROUP BY target
ORDER BY weighted_calls DESC, target;

COMMENT ON MACRO TABLE op_frequency IS 'Every operator: calls, graphs, calls and share weighted by template, calls by occurrence.';
