-- FROM graphs_with_ops(['torch.nn.functional.linear', 'torch.matmul'])
CREATE MACRO graphs_with_ops(operators) AS TABLE
SELECT * FROM graphs WHERE list_has_all(ops, operators) ORDER BY graph_hash;

COMMENT ON MACRO TABLE graphs_with_ops IS 'Rows of graphs that call every operator of a list.';
