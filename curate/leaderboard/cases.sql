-- What the judge found in the cases of some runs, by task.
SELECT *
FROM evaluations
WHERE list_contains($runs, run)
ORDER BY task, subgraph_hash, "case", dtype, submission_name, lowering, run
