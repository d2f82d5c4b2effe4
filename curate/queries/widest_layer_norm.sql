-- How wide do layer norms get?
--
-- width is the number of elements that are normalised together: the product of normalized_shape. One row for each
-- width and dtype, the widest first; rows is the largest number of independent rows it is applied to.
--
-- param rows = 20: widths to show
WITH norms AS (
    SELECT
        graph_hash,
        dtype,
        shape,
        coalesce(
            -- normalized_shape is a tuple, a list or a torch.Size, given by position or by name.
            args ->> '$[1].tuple', args ->> '$[1].size', args ->> '$[1]',
            kwargs ->> '$.normalized_shape.tuple', kwargs ->> '$.normalized_shape.size', kwargs ->> '$.normalized_shape'
        ) AS sizes
    FROM nodes
    WHERE target IN ('torch.nn.functional.layer_norm', 'torch.layer_norm', 'torch.native_layer_norm')
),
widths AS (
    SELECT
        graph_hash,
        dtype,
        list_product(TRY_CAST(sizes AS BIGINT[]))::BIGINT AS width,
        list_product(shape)::BIGINT AS elements
    FROM norms
)
SELECT
    width,
    dtype,
    max(elements // width) AS rows,
    count(*) AS calls,
    count(DISTINCT graph_hash) AS graphs,
    min(graph_hash) AS example
FROM widths
WHERE width > 0
GROUP BY width, dtype
ORDER BY width DESC, dtype
LIMIT $rows;
