-- Which dtypes do the operators yield?
--
-- calls counts operators that yield one tensor of the dtype, in unique graphs; graphs counts the graphs with at least
-- one; weighted_share is the share of calls when each template counts as one graph.
WITH per_graph AS (
    SELECT graph_hash, dtype, count(*) AS calls
    FROM nodes
    WHERE op IN ('call_function', 'call_method') AND dtype IS NOT NULL
    GROUP BY graph_hash, dtype
)
SELECT
    dtype,
    sum(calls)::BIGINT AS calls,
    count(*) AS graphs,
    round(sum(calls * weight) / sum(sum(calls * weight)) OVER (), 5) AS weighted_share
FROM per_graph
JOIN graph_weights USING (graph_hash)
GROUP BY dtype
ORDER BY calls DESC, dtype;
