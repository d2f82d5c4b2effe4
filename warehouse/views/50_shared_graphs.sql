-- Graphs that more than one model has.
CREATE VIEW shared_graphs AS
SELECT
    graph_hash,
    count(DISTINCT (source, name)) AS models,
    count(DISTINCT (source, family)) AS families,
    count(*) AS occurrences
FROM model_graphs
GROUP BY graph_hash
HAVING count(DISTINCT (source, name)) > 1;

COMMENT ON VIEW shared_graphs IS 'Graphs that more than one model has.';
COMMENT ON COLUMN shared_graphs.graph_hash IS 'the graph';
COMMENT ON COLUMN shared_graphs.models IS 'model names that have it';
COMMENT ON COLUMN shared_graphs.families IS 'model families among them';
COMMENT ON COLUMN shared_graphs.occurrences IS 'places where it occurs, every model name, variant and graph index counted';
