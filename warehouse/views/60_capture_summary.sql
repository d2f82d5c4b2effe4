-- Every capture with what became of it, what it cost, and the class of its failure.
CREATE VIEW capture_summary AS
SELECT
    c.capture_id, c.source, c.name, c.variant, c.status, c.build, c.graph_count, c.break_count, c.node_count,
    c.parameters, f.class AS failure_class, t.seconds, t.peak_mb
FROM captures AS c
LEFT JOIN failures AS f USING (capture_id)
LEFT JOIN timings AS t USING (capture_id);

COMMENT ON VIEW capture_summary IS 'Every capture with its outcome, its cost and the class of its failure.';
COMMENT ON COLUMN capture_summary.capture_id IS 'the capture';
COMMENT ON COLUMN capture_summary.source IS 'source of the model';
COMMENT ON COLUMN capture_summary.name IS 'name of the model that stood for the configuration';
COMMENT ON COLUMN capture_summary.variant IS 'how it was traced';
COMMENT ON COLUMN capture_summary.status IS 'complete, partial or failed';
COMMENT ON COLUMN capture_summary.build IS 'how the module was built: empty, meta or real; imported: read from a published sample';
COMMENT ON COLUMN capture_summary.graph_count IS 'graphs that Dynamo compiled';
COMMENT ON COLUMN capture_summary.break_count IS 'graph breaks';
COMMENT ON COLUMN capture_summary.node_count IS 'nodes of all graphs together';
COMMENT ON COLUMN capture_summary.parameters IS 'scalar parameters of the module';
COMMENT ON COLUMN capture_summary.failure_class IS 'class of the failure; null when the capture is complete';
COMMENT ON COLUMN capture_summary.seconds IS 'wall-clock seconds of the capture; null when not measured';
COMMENT ON COLUMN capture_summary.peak_mb IS 'peak resident memory of the worker, MiB';
