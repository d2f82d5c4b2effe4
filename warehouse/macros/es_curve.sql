-- FROM es_curve('3f2a...', 'device', 'tasks')
-- The curve of a run over all its tasks: of each level t, S_t, ES_t with its interval, and the share correct.
CREATE MACRO es_curve(of_run, by_clock, over_pool) AS TABLE
SELECT submission, submission_name, configuration, point.t AS t, point.S AS s, point.ES AS es, point.low AS low, point.high AS high, point.correct AS correct
FROM (
    SELECT
        submission, submission_name, configuration,
        unnest(from_json(curve, '[{"t":"INTEGER","S":"DOUBLE","ES":"DOUBLE","low":"DOUBLE","high":"DOUBLE","correct":"DOUBLE"}]')) AS point
    FROM scores
    WHERE run = of_run AND clock = by_clock AND pool = over_pool AND level = 'whole'
)
ORDER BY submission, t;

COMMENT ON MACRO TABLE es_curve IS 'S_t and ES_t of a run over all its tasks, a row each level t.';
