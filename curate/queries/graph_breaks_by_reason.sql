-- Why do graphs break?
--
-- breaks counts the places, captures the traced configurations and variants that have at least one. A reason is cut at
-- its first line.
--
-- param rows = 20: reasons to show
SELECT
    left(split_part(reason, chr(10), 1), 160) AS reason,
    count(*) AS breaks,
    count(DISTINCT capture_id) AS captures,
    min(source || ':' || name) AS example
FROM graph_breaks
GROUP BY ALL
ORDER BY breaks DESC, reason
LIMIT $rows;
