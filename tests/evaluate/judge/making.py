"""Tasks and submissions for the judge's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dynamo.testing import EagerAndRecordGraphs

from evaluate.integrity.layers import Layers
from evaluate.judge.judge import Judge, Limits, Run
from evaluate.judge.workers import Workers
from evaluate.measure.device import open_device
from evaluate.passes.files import TaskPasses
from evaluate.tasks import Member, Task
from warehouse.graph.from_fx import from_graph_module
from warehouse.graph.inputs import infer_recipes
from warehouse.graph.record import GraphRecord


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


def task(*records: GraphRecord, name: str = "t") -> Task:
    return Task(name, tuple(Member(f"{i:032x}", r) for i, r in enumerate(records)))


def passes(text: str, name: str = "t", **helpers: str) -> TaskPasses:
    """One pass file, and helper files by stem."""
    return TaskPasses(name, ("rule",), {"rule.py": text, **{f"{k}.py": v for k, v in helpers.items()}})


def judge(workers: Workers, layers: Layers | None = None, **limits: Any) -> Judge:
    run = Run("0" * 32, "test", "r", "Bench 0", layers=layers or Layers(), limits=Limits(**limits))
    return Judge(workers, open_device("cpu"), run)
