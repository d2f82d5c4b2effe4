"""The closed list of failure classes, and the one function that assigns them.

A model that cannot be captured is a row in `failures`, never the end of a run. Every class says what a reader can do
about it; a failure that fits none is `unclassified`, and its exception text is there to extend the list from.
"""

from __future__ import annotations

#: class -> what it means and what helps.
CLASSES: dict[str, str] = {
    "missing_dependency": "the model needs a package that is not installed",
    "needs_download": "building asks for files from a hub; captures never download",
    "config_invalid": "the default configuration does not build this class alone",
    "build_error": "the constructor raised in every build mode",
    "inputs_unknown": "no valid example inputs are known for this signature",
    "forward_error": "the model's own code refused the example inputs",
    "data_dependent": "control flow or shapes depend on tensor values that fake tensors do not have",
    "fake_unsupported": "an operator has no fake (meta) implementation, or mixes devices under it",
    "trace_error": "Dynamo could not trace the model",
    "operator_not_listed": "the graph holds an operator that is not on the allow-list (warehouse/graph/operators.txt)",
    "graph_not_serialisable": "the graph holds a value that a record cannot hold",
    "round_trip_mismatch": "the record did not rebuild into the same graph",
    "node_budget": "the graph grew past the node budget (an unrolled scan, as a rule)",
    "no_graph": "the model ran but Dynamo compiled no graph",
    "timeout": "the deadline passed",
    "out_of_memory": "the worker met its memory cap",
    "crash": "the worker died of a signal (segmentation fault, abort)",
    "exit": "the model's code ended the worker process",
    "killed": "the worker was killed from outside, twice",
    "unclassified": "none of the above; the exception text says more",
}
