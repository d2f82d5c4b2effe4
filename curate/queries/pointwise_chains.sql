-- How long do chains of pointwise operators get?
--
-- Chains in reading order in which each operator is pointwise and uses the value of the one before it: what a fusing
-- compiler turns into one kernel between two heavy operators. One row for each distinct chain; graphs counts those
-- that hold it.
--
-- param rows = 20: chains to show
-- param shortest = 3: operators in a chain, at least
WITH calls AS (
    -- Only a scan, a filter and windows down to `runs`: a join in there could change the order of the rows.
    SELECT
        hash(graph_hash) AS graph,
        hash(graph_hash, scope) AS place,
        idx, target,
        CASE WHEN is_pointwise(target) THEN args END AS args
    FROM nodes
    WHERE op IN ('call_function', 'call_method')
),
neighbours AS (
    SELECT
        *,
        idx - lag(idx) OVER () AS distance,
        args IS NOT NULL AND lag(args) OVER () IS NOT NULL AND lag(place) OVER () = place AS candidate
    FROM calls
),
links AS (
    SELECT
        graph, idx, target,
        CASE WHEN candidate THEN contains(args, '"%' || distance || '"') ELSE false END AS linked
    FROM neighbours
),
runs AS (
    -- A chain starts wherever the link to the row before is missing; rows with one number are one chain.
    SELECT
        graph, idx, target, linked,
        lead(linked) OVER () AS goes_on,
        count(*) FILTER (NOT linked) OVER (ROWS UNBOUNDED PRECEDING) AS run
    FROM links
),
members AS MATERIALIZED (SELECT graph, idx, target, run FROM runs WHERE linked OR goes_on),
chains AS (
    SELECT graph, list(target ORDER BY idx) AS chain
    FROM members
    WHERE run IN (SELECT run FROM members GROUP BY run HAVING count(*) >= $shortest)
    GROUP BY run, graph
)
SELECT
    len(chain) AS operators,
    array_to_string(list_transform(chain, lambda o: regexp_extract(o, '[^.]+$')), ' → ') AS chain,
    count(*) AS occurrences,
    count(DISTINCT graph) AS graphs
FROM chains
GROUP BY ALL
ORDER BY operators DESC, graphs DESC, chain
LIMIT $rows;
