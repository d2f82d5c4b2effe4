-- The wiring of the graphs. A reference is a bare JSON string "%k"; strings that are data stand inside {"str": ...}
-- and are taken out first, whatever they hold.
CREATE VIEW edges AS
SELECT
    graph_hash,
    scope,
    idx - trim(reference, '"%')::INTEGER AS producer,
    idx AS consumer,
    count(*)::INTEGER AS uses
FROM (
    SELECT
        graph_hash,
        scope,
        idx,
        unnest(regexp_extract_all(
            CASE WHEN contains(args, '"str"') OR contains(kwargs, '"str"')
                THEN regexp_replace(args || kwargs, '\{"str":"([^"\\]|\\.)*"\}', '', 'g')
                ELSE args || kwargs
            END,
            '"%[0-9]+"'
        )) AS reference
    FROM nodes
    WHERE op IN ('call_function', 'call_method', 'output')
)
GROUP BY ALL;

COMMENT ON VIEW edges IS 'One row for each pair of nodes of which one consumes the value of the other.';
COMMENT ON COLUMN edges.graph_hash IS 'graph that both nodes belong to';
COMMENT ON COLUMN edges.scope IS 'scope of both nodes: empty for the graph itself';
COMMENT ON COLUMN edges.producer IS 'idx of the node whose value is used';
COMMENT ON COLUMN edges.consumer IS 'idx of the node that uses it';
COMMENT ON COLUMN edges.uses IS 'how often the consumer names the producer in its arguments';
