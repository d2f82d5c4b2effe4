-- One row for each graph of $hashes: the first model, by name, that holds it.
SELECT g.graph_hash, min(m.name) AS name, min_by(m.modality, m.name) AS modality, any_value(g.hash_version)
FROM graphs g
LEFT JOIN occurrences o USING (graph_hash)
LEFT JOIN models m USING (config_hash)
WHERE list_contains($hashes, g.graph_hash)
GROUP BY g.graph_hash
ORDER BY g.graph_hash
