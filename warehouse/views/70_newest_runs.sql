-- The newest run of each submission on each set of cases: what a leaderboard shows.
CREATE VIEW newest_runs AS
SELECT submission, submission_name, run, bench, device, lowering, cases, max(scored_at) AS scored_at
FROM scores
WHERE level = 'whole'
GROUP BY submission, submission_name, run, bench, device, lowering, cases
QUALIFY row_number() OVER (
    PARTITION BY submission, submission_name, bench, device, lowering, cases ORDER BY max(scored_at) DESC, run DESC
) = 1;

COMMENT ON VIEW newest_runs IS 'The newest scoring run of each submission, bench, device, lowering and set of cases.';
COMMENT ON COLUMN newest_runs.submission IS 'hash of the submission''s files, or baseline:NAME';
COMMENT ON COLUMN newest_runs.submission_name IS 'what the submission calls itself';
COMMENT ON COLUMN newest_runs.run IS 'id of the scoring run';
COMMENT ON COLUMN newest_runs.bench IS 'version of PassBench: name and content hash';
COMMENT ON COLUMN newest_runs.device IS 'cpu, or the GPU''s name';
COMMENT ON COLUMN newest_runs.lowering IS 'how the rewritten graph was run';
COMMENT ON COLUMN newest_runs.cases IS 'hash of which cases were judged';
COMMENT ON COLUMN newest_runs.scored_at IS 'when it was scored';
