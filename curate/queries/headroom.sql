-- How is headroom distributed: how far are Inductor's kernels from the least traffic that a subgraph can have?
--
-- Headroom is Inductor's device time over that of a plain copy that moves as many bytes (docs/profiling.md). One line for
-- each device, mode and number of kernels that Inductor makes of the subgraph; `all` stands for every one. The figures
-- are quantiles, and shares at or above 1.3, 2 and 4. Where a matrix product is inside, arithmetic may be the bound.
SELECT
    device,
    mode,
    coalesce(kernels, 'all') AS kernels,
    count(*) AS subgraphs,
    round(quantile_cont(headroom, 0.1), 2) AS p10,
    round(median(headroom), 2) AS median,
    round(quantile_cont(headroom, 0.9), 2) AS p90,
    round(quantile_cont(headroom, 0.99), 2) AS p99,
    round(max(headroom), 1) AS most,
    round(avg((headroom >= 1.3)::INTEGER), 4) AS from_1_3,
    round(avg((headroom >= 2)::INTEGER), 4) AS from_2,
    round(avg((headroom >= 4)::INTEGER), 4) AS from_4
FROM (
    SELECT
        device, mode, headroom,
        CASE WHEN extern_kernels > 0 THEN 'with extern kernels'
             WHEN scheduler_kernels = 1 THEN 'one'
             WHEN scheduler_kernels > 1 THEN 'more'
             ELSE 'none' END AS kernels
    FROM profiles
    WHERE class = 'ok' AND headroom IS NOT NULL
)
GROUP BY GROUPING SETS ((device, mode), (device, mode, kernels))
ORDER BY device, mode, grouping(kernels) DESC, subgraphs DESC, kernels;
