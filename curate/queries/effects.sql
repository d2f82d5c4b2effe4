-- Which operators mutate their inputs or draw random numbers?
--
-- Operators with an order token: a compiler must keep their order. share is the share of the operator's calls that
-- carry one (dropout, for example, is random in training only).
--
-- param rows = 30: operators to show
SELECT
    target,
    count(*) FILTER (effect IS NOT NULL) AS effectful_calls,
    round(count(*) FILTER (effect IS NOT NULL) / count(*), 4) AS share,
    count(DISTINCT graph_hash) FILTER (effect IS NOT NULL) AS graphs
FROM nodes
WHERE target IN (SELECT DISTINCT target FROM nodes WHERE effect IS NOT NULL)
    AND op IN ('call_function', 'call_method')
GROUP BY target
ORDER BY effectful_calls DESC, target
LIMIT $rows;
