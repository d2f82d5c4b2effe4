-- Failures with the seconds they took.
CREATE VIEW failures_timed AS
SELECT f.capture_id, f.source, f.name, f.variant, f.class, f.stage, f.exception, f.message, f.place, t.seconds, t.peak_mb
FROM failures AS f
LEFT JOIN timings AS t USING (capture_id);

COMMENT ON VIEW failures_timed IS 'Failures with the seconds and memory they took.';
COMMENT ON COLUMN failures_timed.capture_id IS 'capture that failed';
COMMENT ON COLUMN failures_timed.source IS 'source of the model';
COMMENT ON COLUMN failures_timed.name IS 'name of the model';
COMMENT ON COLUMN failures_timed.variant IS 'variant that failed';
COMMENT ON COLUMN failures_timed.class IS 'class of the failure';
COMMENT ON COLUMN failures_timed.stage IS 'build, inputs, trace, record or worker';
COMMENT ON COLUMN failures_timed.exception IS 'exception type, or the signal''s name';
COMMENT ON COLUMN failures_timed.message IS 'first lines of the exception';
COMMENT ON COLUMN failures_timed.place IS 'file, line and function where it was raised';
COMMENT ON COLUMN failures_timed.seconds IS 'wall-clock seconds of the capture; null when not measured';
COMMENT ON COLUMN failures_timed.peak_mb IS 'peak resident memory of the worker, MiB';
