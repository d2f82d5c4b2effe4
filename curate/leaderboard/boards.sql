-- Every set of rows that may be compared: one bench, device, clock, configuration and set of cases. Largest first.
SELECT s.bench, s.device, s.clock, s.configuration, any_value(s.configuration_json) AS configuration_json, s.cases
FROM scores AS s
SEMI JOIN newest_runs USING (submission, submission_name, run, bench, device, lowering, cases)
WHERE s.level = 'whole' AND s.pool = 'tasks'
GROUP BY s.bench, s.device, s.clock, s.configuration, s.cases
ORDER BY s.device = 'cpu', max(s.tasks + s.left_out) DESC, s.bench, s.device, s.cases, s.clock DESC, s.configuration
