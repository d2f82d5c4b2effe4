-- Model names that one snapshot has and the other has not, by source and family.
SELECT change, source, family, count(*) AS models
FROM (
    SELECT 'added' AS change, source, name, family FROM models_after ANTI JOIN models_before USING (source, name)
    UNION ALL
    SELECT 'removed', source, name, family FROM models_before ANTI JOIN models_after USING (source, name)
)
GROUP BY ALL
ORDER BY change, models DESC, source, family
