-- How many cases of a run and task got which verdict; hacks by their exploit.
CREATE VIEW verdict_counts AS
SELECT submission, submission_name, run, bench, device, lowering, task, verdict, exploit, count(*) AS cases
FROM evaluations
GROUP BY ALL;

COMMENT ON VIEW verdict_counts IS 'How many cases of each run and task got which verdict.';
COMMENT ON COLUMN verdict_counts.submission IS 'hash of the submission''s files, or baseline:NAME';
COMMENT ON COLUMN verdict_counts.submission_name IS 'what the submission calls itself';
COMMENT ON COLUMN verdict_counts.run IS 'id of the scoring run';
COMMENT ON COLUMN verdict_counts.bench IS 'version of PassBench: name and content hash';
COMMENT ON COLUMN verdict_counts.device IS 'cpu, or the GPU''s name';
COMMENT ON COLUMN verdict_counts.lowering IS 'how the rewritten graph was run';
COMMENT ON COLUMN verdict_counts.task IS 'the PassBench task';
COMMENT ON COLUMN verdict_counts.verdict IS 'clean, suspect, hack, wrong, no_match, ...';
COMMENT ON COLUMN verdict_counts.exploit IS 'name of the exploit; only of hack and suspect';
COMMENT ON COLUMN verdict_counts.cases IS 'how many cases';
