-- FROM graphs_without_ops(['torch.nn.functional.softmax'])
CREATE MACRO graphs_without_ops(operators) AS TABLE
SELECT * FROM graphs WHERE NOT list_has_any(ops, operators) ORDER BY graph_hash;

COMMENT ON MACRO TABLE graphs_without_ops IS 'Rows of graphs that call no operator of a list.';
