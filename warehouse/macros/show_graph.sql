-- FROM show_graph('3f2a')
-- The graphs whose hash begins so, one line a node, references given as row numbers.
CREATE MACRO show_graph(hash) AS TABLE
SELECT
    graph_hash,
    scope,
    idx,
    CASE op
        WHEN 'placeholder' THEN coalesce(role, '') || ' ' || coalesce(name, '')
        WHEN 'output' THEN 'return ' || absolute
        ELSE target || absolute
    END AS code,
    coalesce(dtype || coalesce(expr, replace(shape::VARCHAR, ' ', '')), value) AS yields
FROM (
    SELECT
        *,
        list_aggregate(list_transform(
            -- Strings that are data come first in the alternatives, so a "%1" inside one is not a reference.
            regexp_extract_all(
                args || CASE WHEN kwargs = '{}' THEN '' ELSE ' ' || kwargs END,
                '\{"str":"(?:[^"\\]|\\.)*"\}|"%[0-9]+"|[^"{]+|.'
            ),
            lambda piece: CASE WHEN regexp_full_match(piece, '"%[0-9]+"')
                THEN '%' || (idx - trim(piece, '"%')::INTEGER) ELSE piece END
        ), 'string_agg', '') AS absolute
    FROM nodes
    WHERE starts_with(graph_hash, hash)
)
ORDER BY graph_hash, scope, idx;

COMMENT ON MACRO TABLE show_graph IS 'The graphs whose hash begins so, one line a node, references given as row numbers.';
