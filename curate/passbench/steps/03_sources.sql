-- sources: which model configurations and families hold a captured subgraph. A variant has the sources of its origin.
CREATE OR REPLACE TABLE sources AS
WITH configurations AS (
    SELECT config_hash, min(coalesce(nullif(family, ''), name)) AS family
    FROM models
    GROUP BY config_hash
)
SELECT DISTINCT o.subgraph_hash AS root, g.config_hash, coalesce(c.family, g.config_hash) AS family
FROM subgraph_occurrences AS o
JOIN (SELECT DISTINCT root FROM subjects WHERE is_region) AS s ON s.root = o.subgraph_hash
JOIN occurrences AS g ON g.graph_hash = o.graph_hash
LEFT JOIN configurations AS c ON c.config_hash = g.config_hash;
