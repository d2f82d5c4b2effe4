-- Which operator sequences does Inductor make slower on the device?
--
-- Sequences (operators in reading order) of subgraphs that are one kernel to Inductor, by how often they are slower than
-- eager's kernels by more than 5%. structures counts subgraphs that differ in more than dtypes and sizes; ratio is the
-- median of Inductor's device time over eager's among the slower ones, worst the largest.
-- param least = 1: slower subgraphs that a sequence must have
-- param rows = 20: sequences to show
WITH spoken AS (
    SELECT graph_hash AS subgraph_hash, string_agg(regexp_extract(target, '[^.]+$'), ' → ' ORDER BY scope, idx) AS sequence
    FROM subgraph_nodes
    WHERE op IN ('call_function', 'call_method')
    GROUP BY graph_hash
)
SELECT
    p.device,
    w.sequence,
    count(*) FILTER (ratio > 1.05) AS slower,
    count(*) AS measured,
    count(DISTINCT s.structure_hash) AS structures,
    round(median(ratio) FILTER (ratio > 1.05), 3) AS ratio,
    round(max(ratio), 3) AS worst
FROM (
    SELECT *, inductor_device_us / nullif(eager_device_us, 0) AS ratio
    FROM profiles
    WHERE class = 'ok' AND mode = 'default' AND scheduler_kernels = 1 AND extern_kernels = 0
) AS p
JOIN spoken AS w USING (subgraph_hash)
JOIN (SELECT subgraph_hash, min(structure_hash) AS structure_hash FROM subgraphs GROUP BY subgraph_hash) AS s USING (subgraph_hash)
WHERE p.ratio IS NOT NULL
GROUP BY p.device, w.sequence
HAVING slower >= $least
ORDER BY slower DESC, worst DESC, w.sequence, p.device
LIMIT $rows;
