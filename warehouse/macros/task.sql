-- FROM task('layer_norm-gelu-1a2b3c4d5e')
-- The members of every task whose id begins so, in all benches, the shown ones first.
CREATE MACRO task(id) AS TABLE
SELECT t.bench, t.split, t.task, t.stratum, t.family, m.* EXCLUDE (bench, split, task)
FROM tasks AS t
JOIN task_members AS m ON m.bench = t.bench AND m.split = t.split AND m.task = t.task
WHERE starts_with(t.task, id)
ORDER BY t.bench, t.split, t.task, m."case" <> 'given', m."case", m.dtype, m.elements, m.subgraph_hash;

COMMENT ON MACRO TABLE task IS 'Members of the tasks whose id begins so, those that an author is shown first.';
