-- Which operators ever see symbolic sizes?
--
-- symbolic_calls yield a tensor with a symbolic size, or a symbolic number; share is of all calls of the operator.
-- Empty when the warehouse holds no capture with symbolic shapes.
--
-- param rows = 30: operators to show
SELECT
    n.target,
    count(*) FILTER (n.expr IS NOT NULL) AS symbolic_calls,
    round(count(*) FILTER (n.expr IS NOT NULL) / count(*), 4) AS share,
    count(DISTINCT n.graph_hash) FILTER (n.expr IS NOT NULL) AS graphs,
    arg_min(n.expr, (n.graph_hash, n.scope, n.idx)) FILTER (n.expr IS NOT NULL) AS example
FROM nodes AS n
WHERE n.op IN ('call_function', 'call_method')
    AND n.graph_hash IN (SELECT graph_hash FROM graphs WHERE symbolic)
GROUP BY n.target
HAVING symbolic_calls > 0
ORDER BY symbolic_calls DESC, n.target
LIMIT $rows;
