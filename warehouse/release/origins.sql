-- Where graphs come from: a row each source, version of its library, and version of torch that traced it.
SELECT
    source,
    coalesce(library_version, '') AS library,
    coalesce(torch_version, '') AS torch,
    count(DISTINCT config_hash) AS configurations,
    count(*) FILTER (WHERE status <> 'failed') AS captured,
    count(*) FILTER (WHERE status = 'failed') AS failed
FROM captures
GROUP BY ALL
ORDER BY ALL
