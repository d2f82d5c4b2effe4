-- Graphs that one snapshot has and the other has not: how many, and how many bring a structure or template with them.
SELECT
    change,
    count(*) AS graphs,
    count(DISTINCT structure_hash) FILTER (new_structure) AS structures,
    count(DISTINCT template_hash) FILTER (new_template) AS templates,
    sum(node_count)::BIGINT AS nodes
FROM (
    SELECT
        'added' AS change, structure_hash, template_hash, node_count,
        structure_hash NOT IN (SELECT structure_hash FROM graphs_before) AS new_structure,
        template_hash NOT IN (SELECT template_hash FROM graphs_before) AS new_template
    FROM graphs_after ANTI JOIN graphs_before USING (graph_hash)
    UNION ALL
    SELECT
        'removed', structure_hash, template_hash, node_count,
        structure_hash NOT IN (SELECT structure_hash FROM graphs_after),
        template_hash NOT IN (SELECT template_hash FROM graphs_after)
    FROM graphs_before ANTI JOIN graphs_after USING (graph_hash)
)
GROUP BY change
ORDER BY change
