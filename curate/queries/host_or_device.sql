-- Where does Inductor lose time, on the host or on the device?
--
-- One line for each device, mode and family of operators. subgraphs have at least one operator of the family and were
-- measured. host_only: slower than eager end to end, though the device's work is not slower; device_only and both
-- likewise. host_speedup and device_speedup are geometric means of eager's time over Inductor's; headroom is the median
-- of Inductor's device time over that of a copy of as many bytes. On a CPU the device's figures are empty.
WITH members AS (
    SELECT DISTINCT graph_hash AS subgraph_hash, op_family(target) AS family
    FROM nodes
    WHERE op IN ('call_function', 'call_method')
)
SELECT
    p.device,
    p.mode,
    m.family,
    count(*) AS subgraphs,
    round(count(*) FILTER (p.cause = 'host') / count(*), 4) AS host_only,
    round(count(*) FILTER (p.cause = 'device') / count(*), 4) AS device_only,
    round(count(*) FILTER (p.cause = 'both') / count(*), 4) AS both_clocks,
    round(exp(avg(ln(p.eager_host_us / p.inductor_host_us))), 3) AS host_speedup,
    round(exp(avg(ln(nullif(p.eager_device_us, 0) / nullif(p.inductor_device_us, 0)))), 3) AS device_speedup,
    round(median(p.headroom), 3) AS headroom
FROM profiles AS p
JOIN members AS m USING (subgraph_hash)
WHERE p.class = 'ok' AND p.cause IS NOT NULL
GROUP BY ALL
ORDER BY p.device, p.mode, subgraphs DESC, m.family;
