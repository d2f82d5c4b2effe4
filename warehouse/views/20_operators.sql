-- Every operator that some graph calls, with its family.
CREATE VIEW operators AS
-- The family is that of an aggregate, so a filter on it is applied to the few operators and not to every node.
SELECT target, op_family(min(target)) AS family
FROM nodes
WHERE op IN ('call_function', 'call_method')
GROUP BY target;

COMMENT ON VIEW operators IS 'Every operator that some graph calls, with its family.';
COMMENT ON COLUMN operators.target IS 'public dotted name of the operator';
COMMENT ON COLUMN operators.family IS 'what it does: matmul, convolution, pointwise, layout, reduction ...; other if unknown';
