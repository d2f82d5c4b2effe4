-- Which graphs hold attention, yet no softmax?
--
-- kind is "fused" where scaled_dot_product_attention is called (its softmax is inside the operator), and "products"
-- where at least two products of activations (matmul, bmm, einsum, baddbmm) stand without any softmax: linear
-- attention, attention by convolution or by normalisation. models counts the model names that have the graph.
--
-- param rows = 20: graphs to show
WITH kinds AS (
    SELECT
        graph_hash,
        op_count,
        CASE WHEN list_bool_or(list_transform(ops, lambda o: ends_with(o, 'scaled_dot_product_attention')))
            THEN 'fused' ELSE 'products' END AS kind
    FROM graphs
    WHERE NOT list_bool_or(list_transform(ops, lambda o: regexp_matches(o, '\.(log_)?(softmax|softmin)$')))
),
products AS (
    SELECT graph_hash, count(*) AS products
    FROM nodes
    WHERE op IN ('call_function', 'call_method')
        AND target IN (
            SELECT target FROM operators WHERE regexp_matches(target, '\.(matmul|__matmul__|bmm|baddbmm|einsum)$')
        )
    GROUP BY graph_hash
)
SELECT
    k.kind,
    k.graph_hash,
    k.op_count,
    coalesce(p.products, 0) AS products,
    count(DISTINCT (m.source, m.name)) AS models,
    min(m.source || ':' || m.name) AS example
FROM kinds AS k
LEFT JOIN products AS p USING (graph_hash)
LEFT JOIN model_graphs AS m USING (graph_hash)
WHERE k.kind = 'fused' OR p.products >= 2
GROUP BY ALL
ORDER BY k.kind DESC, models DESC, k.graph_hash
LIMIT $rows;
