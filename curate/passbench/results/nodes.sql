-- Rows of all members' graphs.
SELECT n.*
FROM subgraph_nodes AS n
SEMI JOIN picked AS p ON p.subgraph_hash = n.graph_hash
ORDER BY n.graph_hash, n.scope, n.idx
