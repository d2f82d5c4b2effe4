-- members: subgraphs that a task may hold: sound ones, and unprofiled ones of a structure that has a sound one (held out
-- only). `side`: eval or train when all model families that hold it are on that side; else both, and it cannot be used.
-- Families go to a side by a hash of the seed and their name, so nothing about a task decides where its models are.
CREATE OR REPLACE TABLE members AS
WITH sides AS (
    SELECT
        family,
        CASE WHEN ('0x' || left(md5(concat_ws(' ', 'family', rules.seed, family)), 7))::BIGINT / 268435456.0 < rules.eval_share
             THEN 'eval' ELSE 'train' END AS side
    FROM (SELECT DISTINCT family FROM sources), rules
),
placed AS (
    SELECT root, CASE WHEN count(DISTINCT side) = 1 THEN min(side) ELSE 'both' END AS side
    FROM sources
    JOIN sides USING (family)
    GROUP BY root
),
proven AS (
    SELECT DISTINCT task_key FROM verdicts WHERE dropped_by IS NULL
)
SELECT
    v.subgraph_hash, v.kind, v.variant, v.root, v.task_key, v.task_template, v.task_op_hash, v.cause,
    v.host_ratio, v.device_ratio, v.headroom, v.device_slower, v.host_slower, v.has_headroom,
    v.dropped_by IS NULL AS profiled,
    coalesce(p.side, 'both') AS side,
    h.dtype, h.elements,
    floor(log2(greatest(h.elements, 1)) / 3)::INTEGER AS size_class
FROM verdicts AS v
JOIN proven USING (task_key)
JOIN shapes AS h USING (subgraph_hash)
LEFT JOIN placed AS p USING (root)
WHERE v.dropped_by IS NULL OR v.dropped_by = 'unprofiled';
