-- Which share of subgraphs is slower under Inductor than in eager mode, by clock, dtype and size?
--
-- One line for each device, mode, dtype (the lowest precision among its floating-point tensors) and size (bytes that must
-- move); `all` stands for every one. Slower: more than $margin times eager's time. host is end to end, events
-- back-to-back calls, device the device's work alone; speedups are geometric means of eager's time over Inductor's. On a
-- CPU only the host's clock is read.
-- param margin = 1.0: times eager's time from which Inductor counts as slower
WITH measured AS (
    SELECT
        p.*,
        coalesce(list_filter(['bfloat16', 'float16', 'float32', 'float64'], lambda d: list_contains(s.dtypes, d))[1], 'other') AS dtype,
        CASE WHEN p.bytes_read + p.bytes_written < 65536 THEN '1. below 64 KiB'
             WHEN p.bytes_read + p.bytes_written < 1048576 THEN '2. below 1 MiB'
             WHEN p.bytes_read + p.bytes_written < 16777216 THEN '3. below 16 MiB'
             ELSE '4. 16 MiB and more' END AS size
    FROM profiles AS p
    JOIN (SELECT subgraph_hash, min(dtypes) AS dtypes FROM subgraphs GROUP BY subgraph_hash) AS s USING (subgraph_hash)
    WHERE p.class = 'ok'
)
SELECT
    device,
    mode,
    coalesce(dtype, 'all') AS dtype,
    coalesce(size, 'all') AS size,
    count(*) AS subgraphs,
    round(avg((inductor_host_us > $margin * eager_host_us)::INTEGER), 4) AS host_slower,
    round(avg((inductor_events_us > $margin * eager_events_us)::INTEGER), 4) AS events_slower,
    round(avg((inductor_device_us > $margin * eager_device_us)::INTEGER), 4) AS device_slower,
    round(exp(avg(ln(eager_host_us / inductor_host_us))), 3) AS host_speedup,
    round(exp(avg(ln(nullif(eager_device_us, 0) / nullif(inductor_device_us, 0)))), 3) AS device_speedup
FROM measured
GROUP BY GROUPING SETS ((device, mode), (device, mode, dtype), (device, mode, size))
ORDER BY device, mode, grouping(dtype) DESC, grouping(size) DESC, dtype, size;
