"""Tiny records for profiling tests, named by what they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import fx
from torch._dynamo.testing import EagerAndRecordGraphs

from warehouse.graph.from_fx import from_graph_module
from warehouse.graph.inputs import infer_recipes
from warehouse.graph.record import GraphRecord
from warehouse.rows import node_table

F = torch.nn.functional


def record(call: Callable[..., object], *inputs: torch.Tensor) -> GraphRecord:
    """The record of `call` as Dynamo captures it."""
    seen = EagerAndRecordGraphs()
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(call, backend=seen, fullgraph=True, dynamic=False)(*inputs)
    torch._dynamo.reset()
    (graph,) = seen.graphs
    assert isinstance(graph, fx.GraphModule)
    return infer_recipes(from_graph_module(graph))


def named(name: str) -> str:
    """A hash-like key that can be read."""
    return name.encode().hex().ljust(32, "0")[:32]


def write(path: Path, records: dict[str, GraphRecord], priority: dict[str, int] | None = None) -> Path:
    """An items file: `records` by name, in order."""
    table = node_table((named(name), graph) for name, graph in records.items())
    if priority is not None:
        of = {named(name): value for name, value in priority.items()}
        table = table.append_column("priority", pa.array([of[h] for h in table.column("graph_hash").to_pylist()]))
    pq.write_table(table, path)
    return path
