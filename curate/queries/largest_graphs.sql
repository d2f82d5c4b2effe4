-- What is the largest graph of each family?
--
-- One row for each source and family, by operators called; models counts the names that have the graph.
--
-- param rows = 20: families to show
SELECT
    m.source,
    m.family,
    g.op_count,
    g.node_count,
    g.parameter_count,
    g.graph_hash,
    count(DISTINCT m.name) AS models,
    min(m.name) AS example
FROM model_graphs AS m
JOIN graphs AS g USING (graph_hash)
GROUP BY m.source, m.family, g.op_count, g.node_count, g.parameter_count, g.graph_hash
QUALIFY row_number() OVER (PARTITION BY m.source, m.family ORDER BY g.op_count DESC, g.graph_hash) = 1
ORDER BY g.op_count DESC, m.source, m.family
LIMIT $rows;
