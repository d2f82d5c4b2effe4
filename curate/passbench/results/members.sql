-- The members of the chosen tasks as rows of `task_members`, with their task's structure in place of its id.
SELECT
    side AS split, task_key AS structure_hash, subgraph_hash, "case", variant, dtype, elements, profiled,
    CASE WHEN profiled THEN host_ratio END AS host_ratio, CASE WHEN profiled THEN device_ratio END AS device_ratio,
    CASE WHEN profiled THEN headroom END AS headroom, CASE WHEN profiled THEN cause END AS cause
FROM picked
ORDER BY split, number, place
