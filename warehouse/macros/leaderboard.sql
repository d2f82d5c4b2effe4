-- FROM leaderboard('PassBench 0123456789ab', 'NVIDIA H200', 'device') ORDER BY configuration, cases, place
-- Newest runs by AS, pooled over tasks. Only rows of one configuration and one set of cases are comparable, so places
-- count within them.
CREATE MACRO leaderboard(on_bench, on_device, by_clock) AS TABLE
SELECT
    rank() OVER (PARTITION BY s.configuration, s.cases ORDER BY s.aggregate DESC NULLS LAST) AS place,
    s.* EXCLUDE (level, name, pool),
    p.aggregate AS pooled,
    p.aggregate_low AS pooled_low,
    p.aggregate_high AS pooled_high
FROM scores AS s
SEMI JOIN newest_runs USING (submission, submission_name, run, bench, device, lowering, cases)
LEFT JOIN scores AS p
    ON p.level = 'whole' AND p.pool = 'subgraphs' AND p.clock = s.clock AND p.configuration = s.configuration
    AND p.submission = s.submission AND p.submission_name = s.submission_name AND p.run = s.run
    AND p.bench = s.bench AND p.device = s.device AND p.lowering = s.lowering AND p.cases = s.cases
WHERE s.bench = on_bench AND s.device = on_device AND s.clock = by_clock AND s.level = 'whole' AND s.pool = 'tasks';

COMMENT ON MACRO TABLE leaderboard IS 'Newest runs on a bench and device by one clock, by AS; pooled: AS over all cases at once.';
