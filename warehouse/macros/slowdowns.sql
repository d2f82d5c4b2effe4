-- FROM slowdowns('NVIDIA H200') WHERE device_ratio > 1 ORDER BY device_ratio DESC
-- Ratios are Inductor's time over eager's by each clock: above 1, Inductor is slower. floor_ratio is headroom.
CREATE MACRO slowdowns(on_device) AS TABLE
SELECT
    subgraph_hash,
    mode,
    inductor_host_us / eager_host_us AS host_ratio,
    inductor_events_us / eager_events_us AS events_ratio,
    inductor_device_us / nullif(eager_device_us, 0) AS device_ratio,
    headroom AS floor_ratio,
    cause,
    eager_host_us,
    inductor_host_us,
    eager_device_us,
    inductor_device_us,
    greatest(
        coalesce(eager_host_spread, 0), coalesce(inductor_host_spread, 0),
        coalesce(eager_device_spread, 0), coalesce(inductor_device_spread, 0)
    ) AS widest_spread,
    inductor_kernels,
    inductor_t,
    bytes_read + bytes_written AS bytes_moved
FROM profiles
WHERE device = on_device AND class = 'ok';

COMMENT ON MACRO TABLE slowdowns IS 'Measured subgraphs on a device: Inductor over eager by each clock, headroom, cause.';
