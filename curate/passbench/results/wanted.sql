-- Rows of the graphs that could be members and have no figures, with a priority: the first missing dtype and size of
-- every candidate task before a second one, eval before train, in the order in which tasks are taken.
WITH missing AS (
    SELECT
        m.subgraph_hash, m.side, r.place, r.stratum,
        row_number() OVER (PARTITION BY m.side, m.task_key, m.dtype ORDER BY m.size_class, m.subgraph_hash) AS turn
    FROM members AS m
    JOIN ranked AS r ON r.task_key = m.task_key AND r.side = m.side
    WHERE NOT m.profiled
),
lined AS (
    SELECT subgraph_hash, row_number() OVER (ORDER BY turn, side, place, stratum, subgraph_hash) AS priority
    FROM missing
)
SELECT n.*, l.priority
FROM subgraph_nodes AS n
JOIN lined AS l ON l.subgraph_hash = n.graph_hash
ORDER BY l.priority, n.scope, n.idx
