-- Which model has which graph: names, configurations, captures and graphs joined along.
CREATE VIEW model_graphs AS
SELECT m.source, m.name, m.family, m.task, m.modality, c.variant, c.capture_id, o.graph_index, o.graph_hash
FROM occurrences AS o
JOIN captures AS c USING (capture_id)
JOIN models AS m ON m.config_hash = c.config_hash;

COMMENT ON VIEW model_graphs IS 'Which model has which graph: one row for each model name, variant and graph index.';
COMMENT ON COLUMN model_graphs.source IS 'source of the model';
COMMENT ON COLUMN model_graphs.name IS 'name inside the source; all names of one configuration are listed';
COMMENT ON COLUMN model_graphs.family IS 'model family';
COMMENT ON COLUMN model_graphs.task IS 'what the head does';
COMMENT ON COLUMN model_graphs.modality IS 'vision, text, audio, video, multimodal or time-series';
COMMENT ON COLUMN model_graphs.variant IS 'how it was traced';
COMMENT ON COLUMN model_graphs.capture_id IS 'capture in which the graph occurs';
COMMENT ON COLUMN model_graphs.graph_index IS 'which graph of that capture, from 0';
COMMENT ON COLUMN model_graphs.graph_hash IS 'the graph';
