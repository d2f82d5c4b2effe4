-- rarity: how unexpected an operator sequence is: the mean of -log P(operator | operator before it), with a start and an
-- end, under a bigram model of one subgraph of each template, smoothed by 0.001. Logs are summed as whole millionths, so
-- that the order of summing does not show. `op_mix` names the families of the operators.
CREATE OR REPLACE TABLE rarity AS
WITH spoken AS (
    SELECT task_op_hash AS op_hash, task_template AS template_hash, min(subgraph_hash) AS subgraph_hash
    FROM subjects
    WHERE is_region AND variant IN ('given', 'backward')
    GROUP BY task_op_hash, task_template
),
calls AS (
    SELECT
        s.op_hash, s.template_hash, n.target,
        row_number() OVER (PARTITION BY s.subgraph_hash ORDER BY n.scope, n.idx) AS place,
        lag(n.target, 1, '') OVER (PARTITION BY s.subgraph_hash ORDER BY n.scope, n.idx) AS before,
        lead(n.target) OVER (PARTITION BY s.subgraph_hash ORDER BY n.scope, n.idx) IS NULL AS is_last
    FROM spoken AS s
    JOIN subgraph_nodes AS n ON n.graph_hash = s.subgraph_hash
    WHERE n.op IN ('call_function', 'call_method')
),
bigrams AS (
    SELECT op_hash, template_hash, before, target FROM calls
    UNION ALL
    SELECT op_hash, template_hash, target, '' FROM calls WHERE is_last
),
model AS (
    SELECT
        before, target,
        (count(*) + 0.001) / (sum(count(*)) OVER (PARTITION BY before) + 0.001 * (SELECT count(DISTINCT target) FROM bigrams)) AS p
    FROM bigrams
    GROUP BY before, target
),
scored AS (
    SELECT op_hash, template_hash, sum((-ln(p) * 1e6)::BIGINT) / count(*) / 1e6 AS rarity
    FROM bigrams
    JOIN model USING (before, target)
    GROUP BY op_hash, template_hash
),
named AS (
    SELECT
        op_hash, template_hash,
        list(target ORDER BY place) AS ops,
        array_to_string(list_sort(list_distinct(list(op_family(target)))), '+') AS op_mix
    FROM calls
    GROUP BY op_hash, template_hash
)
SELECT * FROM named JOIN scored USING (op_hash, template_hash);
