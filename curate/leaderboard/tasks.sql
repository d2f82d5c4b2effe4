-- Scores by task of the runs on one board. Strata come first, so that a reader sees them above their tasks.
SELECT s.level, s.name, s.run, s.submission, s.aggregate, s.aggregate_low, s.aggregate_high, s.gmean, s.correct, s.samples
FROM scores AS s
WHERE s.level IN ('stratum', 'task') AND (s.level = 'task' OR s.pool = 'tasks')
    AND s.clock = $clock AND s.configuration = $configuration AND s.bench = $bench AND s.device = $device
    AND list_contains($runs, s.run)
ORDER BY s.level, s.name
