-- Failed captures that one snapshot has and the other has not, by class and source.
SELECT change, class, source, count(*) AS captures
FROM (
    SELECT 'added' AS change, class, source FROM failures_after ANTI JOIN failures_before USING (capture_id)
    UNION ALL
    SELECT 'removed', class, source FROM failures_before ANTI JOIN failures_after USING (capture_id)
)
GROUP BY ALL
ORDER BY change, captures DESC, class, source
