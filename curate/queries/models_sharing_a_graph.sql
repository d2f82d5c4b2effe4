-- Which models share one graph?
--
-- A graph is shared when model names with different or equal configurations compute the same thing on the same shapes:
-- weights apart, they are one. names lists up to five of them.
--
-- param rows = 20: graphs to show
SELECT
    s.models,
    s.families,
    g.op_count,
    s.graph_hash,
    array_to_string(list_sort(list(DISTINCT m.source || ':' || m.name))[1:5], ', ') AS names
FROM (FROM shared_graphs ORDER BY models DESC, graph_hash LIMIT $rows) AS s
JOIN graphs AS g USING (graph_hash)
JOIN model_graphs AS m USING (graph_hash)
GROUP BY s.models, s.families, g.op_count, s.graph_hash
ORDER BY s.models DESC, s.graph_hash;
