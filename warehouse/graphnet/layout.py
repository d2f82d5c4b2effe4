"""The files of one graph's folder in GraphNet's layout, and of a PassBench task's."""

from __future__ import annotations

MODEL = "model.py"
WEIGHTS = "weight_meta.py"
INPUTS = "input_meta.py"
CONSTRAINTS = "input_tensor_constraints.py"
HASH = "graph_hash.txt"
#: The marker of a complete folder: written last.
FACTS = "graph_net.json"
SUBGRAPH = "subgraph_sources.json"
#: The class in model.py.
CLASS = "GraphModule"

#: A task folder lists its graphs here, one a line, by paths under its own folder.
TASK_LIST = "graph_list.txt"
TASK_UIDS = "sample_uids.txt"
TASK_GRAPHS = "graphs"
TASK_PASSES = "pass_dir"

#: Attributes of a meta class beyond GraphNet's own, which its readers pass over. They make reading back exact.
RECIPE, PATH, ROLE, STRIDE = "recipe", "original_name", "role", "stride"
