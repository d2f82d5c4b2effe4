-- One row for each graph break.
CREATE VIEW graph_breaks AS
SELECT capture_id, source, name, variant, generate_subscripts(break_reasons, 1) - 1 AS break_index, unnest(break_reasons) AS reason
FROM captures;

COMMENT ON VIEW graph_breaks IS 'One row for each graph break of each capture.';
COMMENT ON COLUMN graph_breaks.capture_id IS 'capture with the break';
COMMENT ON COLUMN graph_breaks.source IS 'source of the model';
COMMENT ON COLUMN graph_breaks.name IS 'name of the model';
COMMENT ON COLUMN graph_breaks.variant IS 'how it was traced';
COMMENT ON COLUMN graph_breaks.break_index IS 'which break of the capture, from 0';
COMMENT ON COLUMN graph_breaks.reason IS 'reason as Dynamo gives it';
