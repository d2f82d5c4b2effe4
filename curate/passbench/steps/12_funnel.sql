-- funnel: what each filter took, in the order of the filters. A structure is taken by the filter at which the last of
-- its subgraphs ended; what is left after them all is chosen, or not needed.
CREATE OR REPLACE TABLE funnel AS
WITH filters AS (
    SELECT unnest(['lone', 'no_floats', 'unprofiled', 'not_measured', 'several_kernels', 'trivial_answer', 'ignores_inputs', 'inexact',
                   'unstable', 'launch_noise', 'frequent', 'well_served', 'straddling', 'not_needed', 'chosen']) AS filter,
           unnest(range(1, 16)) AS step
),
fates AS (
    SELECT
        v.subgraph_hash, v.task_key,
        CASE WHEN v.dropped_by IS NOT NULL THEN v.dropped_by
             WHEN g.dropped_by IS NOT NULL THEN g.dropped_by
             WHEN c.task_key IS NULL THEN 'not_needed'
             ELSE 'chosen' END AS filter
    FROM verdicts AS v
    LEFT JOIN members AS m ON m.subgraph_hash = v.subgraph_hash
    LEFT JOIN groups AS g ON g.task_key = m.task_key AND g.side = m.side
    LEFT JOIN chosen AS c ON c.task_key = m.task_key AND c.side = m.side
),
subgraphs_taken AS (
    SELECT filter, count(*) AS subgraphs FROM fates GROUP BY filter
),
structures_taken AS (
    SELECT step, count(*) AS structures
    FROM (SELECT task_key, max(step) AS step FROM fates JOIN filters USING (filter) GROUP BY task_key)
    GROUP BY step
)
SELECT
    f.step, f.filter, coalesce(s.structures, 0) AS structures, coalesce(t.subgraphs, 0) AS subgraphs,
    (sum(coalesce(s.structures, 0)) OVER (ORDER BY f.step DESC) - coalesce(s.structures, 0))::BIGINT AS structures_left
FROM filters AS f
LEFT JOIN structures_taken AS s USING (step)
LEFT JOIN subgraphs_taken AS t USING (filter);
