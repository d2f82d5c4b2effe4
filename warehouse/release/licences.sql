-- Licences of the model definitions that graphs come from; the empty one is of models whose source states none.
WITH licensed AS (SELECT DISTINCT coalesce(license, '') AS license, config_hash FROM models),
held AS (SELECT DISTINCT license, graph_hash FROM licensed JOIN occurrences USING (config_hash)),
named AS (
    SELECT coalesce(license, '') AS license, count(*) AS models, count(DISTINCT config_hash) AS configurations
    FROM models
    WHERE config_hash IN (SELECT config_hash FROM occurrences)
    GROUP BY ALL
)
SELECT license, models, configurations, (SELECT count(*) FROM held WHERE held.license = named.license) AS graphs
FROM named
ORDER BY models DESC, license
