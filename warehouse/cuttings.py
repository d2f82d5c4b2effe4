"""The tables of subgraphs: what was cut out of which graph, and what could not be; docs/subgraphs.md.

`subgraph_nodes` has the columns of `nodes` and is declared beside it (warehouse/schema.py).
"""

from __future__ import annotations

import pyarrow as pa

from warehouse.table import Table

_S, _I32 = pa.string(), pa.int32()

SUBGRAPHS = Table(
    "subgraphs",
    "Subgraphs cut out of graphs: a row each subgraph and kind.",
    (
        ("subgraph_hash", _S, "graph_hash of the subgraph's own record: its identity"),
        ("kind", _S, "sole_op, fusible (a candidate until a profile proves it) or typical"),
        ("variant", _S, "given: as cut out; else what was changed, for example float16 or backward"),
        ("of", _S, "subgraph that a variant was made from; null when given"),
        ("structure_hash", _S, "the same without dtypes and tensor sizes"),
        ("template_hash", _S, "the same without numeric literals too"),
        ("op_hash", _S, "operator sequence in canonical order"),
        ("graph_hash", _S, "least graph that it was cut out of; null for a variant"),
        ("node_count", _I32, "rows in subgraph_nodes"),
        ("op_count", _I32, "calls among them"),
        ("compute_count", _I32, "calls that compute: no views, copies, casts or fillings"),
        ("input_count", _I32, "tensors that it reads, parameters too"),
        ("output_count", _I32, "tensors that it yields"),
        ("dtypes", pa.list_(_S), "dtypes of all tensors, sorted"),
        ("ops", pa.list_(_S), "distinct operators, sorted"),
        ("verified", _S, "nodes: rebuilt and compared row by row; outputs: also run against its parent, bit for bit"),
        ("hash_version", _I32, "version of the hash definition"),
    ),
    ("subgraph_hash", "kind"),
)

SUBGRAPH_OCCURRENCES = Table(
    "subgraph_occurrences",
    "Every place where a subgraph occurs; models follow from the graph by `occurrences`.",
    (
        ("subgraph_hash", _S, "the subgraph"),
        ("kind", _S, "kind of the subgraph"),
        ("graph_hash", _S, "graph that it was cut out of"),
        ("first_row", _I32, "first of its rows"),
        ("rows", pa.list_(_I32), "rows of that graph that it covers, ascending"),
    ),
    ("subgraph_hash", "kind", "graph_hash", "first_row"),
)

DECOMPOSITIONS = Table(
    "decompositions",
    "Graphs that were decomposed, whether anything came of it or not.",
    (
        ("graph_hash", _S, "the graph"),
        ("cut_version", _I32, "version of the rules of cutting"),
        ("light_rows", pa.list_(_I32), "rows that compute and that no extern kernel or barrier takes"),
        ("words", pa.list_(_S), "operators that a typical sequence may hold, in reading order; null: a wall"),
        ("word_rows", pa.list_(_I32), "row of each of them"),
    ),
    ("graph_hash",),
)

SUBGRAPH_FAILURES = Table(
    "subgraph_failures",
    "Graphs that could not be decomposed, and variants that a subgraph does not have.",
    (
        ("graph_hash", _S, "the graph, or the subgraph whose variant failed"),
        ("kind", _S, "kind of subgraphs that were cut, or the variant's name"),
        ("class", _S, "one of the closed list in extract/failures.py"),
        ("exception", _S, "exception type, or the signal's name"),
        ("message", _S, "first lines of the exception, machine-specific parts removed"),
        ("place", _S, "file, line and function where it was raised"),
    ),
    ("graph_hash", "kind"),
)
