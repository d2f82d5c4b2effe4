-- shapes: of every subgraph that could be in a task, the floating-point dtype of its inputs (the commonest; ties go to
-- the lower precision), and the elements of its largest tensor.
CREATE OR REPLACE TABLE shapes AS
WITH tensors AS (
    SELECT
        n.graph_hash AS subgraph_hash, n.op, n.dtype,
        CASE WHEN len(n.shape) = 0 THEN 1 ELSE list_product(n.shape)::BIGINT END AS elements
    FROM subgraph_nodes AS n
    SEMI JOIN (SELECT subgraph_hash FROM subjects WHERE is_region) AS s ON s.subgraph_hash = n.graph_hash
    WHERE n.scope = '' AND n.value = 'tensor' AND n.shape IS NOT NULL
),
ranked AS (
    SELECT subgraph_hash, dtype, list_position(['bfloat16', 'float16', 'float32', 'float64'], dtype) AS place, count(*) AS times
    FROM tensors
    WHERE op = 'placeholder' AND dtype IN ('bfloat16', 'float16', 'float32', 'float64')
    GROUP BY subgraph_hash, dtype
    QUALIFY row_number() OVER (PARTITION BY subgraph_hash ORDER BY times DESC, place) = 1
)
SELECT t.subgraph_hash, any_value(r.dtype) AS dtype, max(t.elements) AS elements
FROM tensors AS t
LEFT JOIN ranked AS r USING (subgraph_hash)
GROUP BY t.subgraph_hash;
