-- Captures that one snapshot has and the other has not, by source, variant and status.
SELECT change, source, variant, status, count(*) AS captures
FROM (
    SELECT 'added' AS change, source, variant, status FROM captures_after ANTI JOIN captures_before USING (capture_id)
    UNION ALL
    SELECT 'removed', source, variant, status FROM captures_before ANTI JOIN captures_after USING (capture_id)
)
GROUP BY ALL
ORDER BY change, captures DESC, source, variant, status
