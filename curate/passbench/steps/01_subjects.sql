-- subjects: every subgraph once, with the captured one that it comes from and the task that it would belong to.
--
-- A dtype or size variant belongs to the task of its origin's structure; a backward graph has a structure, and so a task,
-- of its own. A subgraph of several kinds counts as fusible first.
CREATE OR REPLACE TABLE subjects AS
WITH once AS (
    SELECT *
    FROM subgraphs
    QUALIFY row_number() OVER (
        PARTITION BY subgraph_hash ORDER BY kind = 'fusible' DESC, kind, variant = 'given' DESC, variant, "of"
    ) = 1
),
rooted AS (
    SELECT s.*, coalesce(nullif(parent."of", ''), nullif(s."of", ''), s.subgraph_hash) AS root
    FROM once AS s
    LEFT JOIN once AS parent ON parent.subgraph_hash = s."of"
)
SELECT
    s.subgraph_hash, s.kind, s.variant, s.root,
    CASE WHEN s.variant IN ('given', 'backward') THEN s.structure_hash
         ELSE coalesce(origin.structure_hash, s.structure_hash) END AS task_key,
    CASE WHEN s.variant IN ('given', 'backward') THEN s.template_hash
         ELSE coalesce(origin.template_hash, s.template_hash) END AS task_template,
    CASE WHEN s.variant IN ('given', 'backward') THEN s.op_hash
         ELSE coalesce(origin.op_hash, s.op_hash) END AS task_op_hash,
    s.template_hash, s.op_hash, s.op_count, s.compute_count, s.kind <> 'sole_op' AND s.op_count >= 2 AND s.compute_count >= 1 AS is_region
FROM rooted AS s
LEFT JOIN once AS origin ON origin.subgraph_hash = s."of";
