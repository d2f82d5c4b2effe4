-- curve: the frequency curve of operator sequences. `templates` counts in how many templates of whole graphs a sequence
-- occurs, so that a family of hundreds of graphs that differ in a literal counts once. `tail_share` is the share of all
-- (sequence, template) pairs that strictly more frequent sequences make up: equally frequent ones are on one side of the
-- cut. The long tail begins where it reaches rules.head_share. A backward graph occurs where its forward does.
CREATE OR REPLACE TABLE curve AS
WITH held AS (
    SELECT DISTINCT s.task_op_hash AS op_hash, g.template_hash
    FROM subgraph_occurrences AS o
    JOIN subjects AS s ON s.root = o.subgraph_hash
    JOIN graphs AS g ON g.graph_hash = o.graph_hash
    WHERE s.is_region AND s.variant IN ('given', 'backward')
),
counted AS (
    SELECT op_hash, count(*) AS templates FROM held GROUP BY op_hash
),
classes AS (
    SELECT templates, sum(templates) AS pairs FROM counted GROUP BY templates
),
shares AS (
    SELECT
        templates,
        (sum(pairs) OVER (ORDER BY templates DESC) - pairs) / sum(pairs) OVER () AS tail_share
    FROM classes
)
SELECT
    op_hash, templates, tail_share,
    row_number() OVER (ORDER BY templates DESC, op_hash) AS place,
    tail_share >= (SELECT head_share FROM rules) AS in_tail
FROM counted
JOIN shares USING (templates);
