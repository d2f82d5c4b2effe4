"""A draft record and its metas to a full GraphRecord: the dtype and shape of every value, and value recipes.

A sample states its arguments alone. The draft is rebuilt through the allow-list (`warehouse.graph.to_fx`) and run once
on fake tensors, which have sizes and no data; the graph with what it yielded is then recorded as a captured graph is,
so an imported graph is hashed like any other.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._mode_utils import no_dispatch

from extract.dynamo import device_stands_by
from extract.graphnet import memory
from extract.graphnet.forward import MAX_NAME, Program
from extract.graphnet.metas import Meta
from extract.graphnet.names import path_and_role
from extract.graphnet.problem import SampleError, shown
from extract.graphnet.recipes import with_recipes
from extract.graphnet.vocabulary import FILE
from warehouse.graph.from_fx import difference, from_graph_module
from warehouse.graph.inputs import MAX_ELEMENTS
from warehouse.graph.literals import DTYPES
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graph.to_fx import to_graph_module
from warehouse.graphnet.layout import PATH, ROLE, STRIDE, WEIGHTS

_ROW = re.compile(r"row (\d+): ")
_memory = memory.Memory()


class RunError(Exception):
    """An operator refused its fake operands; raised from the operator's own exception. `place` is its line."""

    def __init__(self, message: str, place: str):
        super().__init__(message)
        self.place = place


def complete(program: Program, metas: Mapping[str, Meta]) -> GraphRecord:
    """The record of a sample.

    Raises SampleError for what the sample lacks, RecordError for what a record cannot hold, RunError for a graph that
    does not run on its metas.
    """
    described = [_described(parameter.name, metas) for parameter in program.parameters]
    roles = [
        _stated(meta, *path_and_role(p.name, p.annotation))
        for p, meta in zip(program.parameters, described, strict=True)
    ]
    draft = program.draft.with_nodes(
        tuple(
            _typed(node, meta, role)
            for node, meta, (_, role) in zip(program.draft.nodes, described, roles, strict=False)
        )
        + program.draft.nodes[len(described) :]
    )
    try:
        module = to_graph_module(draft, callable_=False)
    except RecordError as error:
        raise _placed(error, program) from error
    _run(module, described, [role for _, role in roles], program)
    record = from_graph_module(module)
    rows = list(record.nodes)
    for row, node in record.placeholders():
        path, role = roles[node.slot or 0]
        rows[row] = replace(node, name=path, role=role)
    record = with_recipes(record.with_nodes(tuple(rows)), dict(enumerate(described)))
    where = difference(module, to_graph_module(record, callable_=False))
    if where is not None:
        raise RecordError("round_trip_mismatch", where)
    return record


def _described(name: str, metas: Mapping[str, Meta]) -> Meta:
    if name not in metas:
        raise SampleError("meta_invalid", f"argument {shown(name)} is described nowhere", "weight_meta.py")
    return metas[name]


def _stated(meta: Meta, path: str, role: str) -> tuple[str, str]:
    """Path and role as our own export states them beside the layout's attributes, else as the name tells."""
    told = meta.extra.get(PATH), meta.extra.get(ROLE)
    if role != "symbol" and isinstance(told[0], str) and told[1] in ("parameter", "buffer", "input"):
        return told[0][:MAX_NAME], str(told[1])
    return path, role


def _typed(node: Node, meta: Meta, role: str) -> Node:
    if role == "symbol":
        return replace(node, value="symint", role=role)
    return replace(node, value="tensor", dtype=meta.dtype, shape=meta.shape, device=meta.device, role=role)


def _placed(error: RecordError, program: Program) -> SampleError:
    """The same error with the line of model.py in place of the row."""
    found = _ROW.search(str(error))
    row = int(found.group(1)) if found else 0
    line = program.lines[row] if row < len(program.lines) else 0
    return SampleError(error.kind, _ROW.sub("", str(error), count=1), f"{FILE}:{line}")


@contextlib.contextmanager
def _fake() -> Iterator[FakeTensorMode]:
    """Fake tensors as a capture has them: on a CUDA device that need not be there, unknown sizes as symbols."""
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    with torch.no_grad(), device_stands_by(), mode:
        yield mode


def _run(module: fx.GraphModule, described: list[Meta], roles: list[str], program: Program) -> None:
    """Run `module` on fakes of its metas and note each node's value as Dynamo would (`example_value`)."""
    rows = enumerate(program.draft.nodes)
    device = torch.device("cuda" if any(meta.device == "cuda" for meta in described) else "cpu")  # of constants
    values: dict[fx.Node, Any] = {}
    remembered = memory.Graph(_memory, program.draft)
    with _fake() as mode:
        for node in module.graph.nodes:
            if node.op == "output":
                continue
            at, row = next(rows)
            if node.op == "placeholder":
                read = any(user.target == "item" for user in node.users)
                value = _argument(described[at], roles[at], mode, read)
            elif node.op == "get_attr":
                held = getattr(module, str(node.target))
                with no_dispatch():
                    value = FakeTensor(mode, held.to("meta"), device if held.dim() else held.device, held)
            else:
                value = remembered.result(at, row, mode, partial(_called, node, values, program.lines[at]))
            remembered.note(at, value)
            values[node] = node.meta["example_value"] = value


def _called(node: fx.Node, values: Mapping[fx.Node, Any], line: int) -> Any:
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    try:
        if node.op == "call_function":
            return node.target(*args, **kwargs)  # type: ignore[operator]
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    except Exception as error:  # whatever an operator says of its operands
        raise RunError(f"{node.target} refuses its operands", f"{FILE}:{line}") from error


def _argument(meta: Meta, role: str, mode: FakeTensorMode, read: bool) -> Any:
    """The fake of an argument. `read`: `.item()` reads it (an eps, a size), so its one value goes with it."""
    if role == "symbol":
        return int(meta.data[0]) if meta.data else 4
    with no_dispatch():
        dtype = DTYPES[meta.dtype]
        constant = None
        if read and math.prod(meta.shape) == 1:
            constant = torch.tensor(meta.data or [meta.mean or 0.0], dtype=dtype).reshape(meta.shape)
        made = torch.empty_strided(meta.shape, _stride(meta), dtype=dtype, device="meta")
        return FakeTensor(mode, made, torch.device(meta.device), constant)


def _stride(meta: Meta) -> tuple[int, ...]:
    """Strides as our own export states them, else those of a contiguous tensor."""
    told = meta.extra.get(STRIDE)
    if told is None:
        return torch.empty(meta.shape, device="meta").stride()
    sane = isinstance(told, list) and len(told) == len(meta.shape) and all(type(s) is int and s >= 0 for s in told)
    if not sane or sum((s - 1) * t for s, t in zip(meta.shape, told, strict=True)) >= MAX_ELEMENTS:
        raise SampleError(
            "meta_invalid", f"{shown(meta.name)}: strides {shown(told)} do not fit", f"{WEIGHTS}:{meta.line}"
        )
    return tuple(told)
