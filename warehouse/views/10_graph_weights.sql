-- How much each unique graph counts. Graphs of one template have the same operators and differ in literals, sizes and
-- dtypes alone, so statistics that should not drown in one family count the representative of each template.
CREATE VIEW graph_weights AS
SELECT
    g.graph_hash,
    g.template_hash,
    count(*) OVER template AS template_graphs,
    1.0 / count(*) OVER template AS weight,
    row_number() OVER (PARTITION BY g.template_hash ORDER BY g.graph_hash) = 1 AS is_representative,
    coalesce(o.multiplicity, 0) AS multiplicity
FROM graphs AS g
LEFT JOIN (SELECT graph_hash, count(*) AS multiplicity FROM occurrences GROUP BY graph_hash) AS o USING (graph_hash)
WINDOW template AS (PARTITION BY g.template_hash);

COMMENT ON VIEW graph_weights IS 'How much each unique graph counts when statistics are weighted by template.';
COMMENT ON COLUMN graph_weights.graph_hash IS 'the graph';
COMMENT ON COLUMN graph_weights.template_hash IS 'its template: the graph without dtypes, tensor sizes and numeric literals';
COMMENT ON COLUMN graph_weights.template_graphs IS 'unique graphs of that template';
COMMENT ON COLUMN graph_weights.weight IS '1 / template_graphs: the weights of a template add up to 1';
COMMENT ON COLUMN graph_weights.is_representative IS 'true for one graph of each template, the least graph_hash';
COMMENT ON COLUMN graph_weights.multiplicity IS 'occurrences of the graph in all captures';
