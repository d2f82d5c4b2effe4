-- FROM op_ngrams(3) LIMIT 20
-- n operators that stand next to each other in reading order (placeholders skipped), n from 1 to 8. Files are sorted by
-- graph and row, so the windows read them as they stand, without sorting; a sequence that would run over the end of a
-- graph or scope is dropped. Hashes stand in for the names until the end: numbers compare faster.
CREATE MACRO op_ngrams(n) AS TABLE
WITH calls AS (
    -- Only a scan, a filter and windows: a join in here could change the order of the rows.
    SELECT hash(graph_hash) AS graph, hash(graph_hash, scope) AS place, hash(target) AS a
    FROM nodes
    WHERE op IN ('call_function', 'call_method')
),
windows AS (
    SELECT
        graph, place, a,
        lead(place, n - 1) OVER () AS last_place,
        CASE WHEN n > 1 THEN lead(a, 1) OVER () END AS b,
        CASE WHEN n > 2 THEN lead(a, 2) OVER () END AS c,
        CASE WHEN n > 3 THEN lead(a, 3) OVER () END AS d,
        CASE WHEN n > 4 THEN lead(a, 4) OVER () END AS e,
        CASE WHEN n > 5 THEN lead(a, 5) OVER () END AS f,
        CASE WHEN n > 6 THEN lead(a, 6) OVER () END AS g,
        CASE WHEN n > 7 THEN lead(a, 7) OVER () END AS h
    FROM calls
),
counts AS (
    SELECT a, b, c, d, e, f, g, h, count(*) AS calls, count(*) FILTER (is_representative) AS template_calls
    FROM windows
    LEFT JOIN (SELECT hash(graph_hash) AS graph, is_representative FROM graph_weights) USING (graph)
    WHERE place = last_place
    GROUP BY a, b, c, d, e, f, g, h
),
names AS (SELECT map_from_entries(list((hash(target), target))) AS name_of FROM operators)
SELECT
    list_transform(list_filter([a, b, c, d, e, f, g, h], lambda x: x IS NOT NULL), lambda x: name_of[x]) AS sequence,
    template_calls,
    calls
FROM counts, names
WHERE n BETWEEN 1 AND 8
ORDER BY template_calls DESC, calls DESC, sequence;

COMMENT ON MACRO TABLE op_ngrams IS 'Sequences of n operators (1 to 8) in reading order: how often in one graph of each template, and in all graphs.';
