"""Which write each read comes after: the edges that keep a read from crossing a write.

In: a record and its references. Out: for each reference, the last row that wrote what it may share memory with. What
may share memory is decided once for the whole graph (views, results of in-place operators, results of nested graphs),
not row by row, so that the answer does not change when independent rows change places.
"""

from __future__ import annotations

import json
from typing import Any

from dedup.bodies import Bodies
from warehouse.graph.record import GraphRecord

#: Views whose results may share memory with any of their arguments.
_OF_ANY = {"torch.meshgrid", "torch.broadcast_tensors"}


def writes_before(record: GraphRecord, refs: list[list[int]], effects: list[int], bodies: Bodies) -> list[list[int]]:
    """For each row, one entry a reference: the row that last wrote it, or -1. Empty where no entry is a row."""
    nothing: list[list[int]] = [[]] * len(refs)  # one list for all: entries are replaced, never added to
    written = {row: found for row in effects if (found := _written(record, row, refs[row], bodies))}
    if not written:
        return nothing
    memory = _shared_memory(record, refs, written, bodies)
    last: dict[int, int] = {}
    after = nothing
    for row, wanted in enumerate(refs):
        if last:
            entries = [last.get(memory[ref], -1) for ref in wanted]
            if max(entries, default=-1) >= 0:
                after[row] = entries
        for ref in written.get(row, ()):
            last[memory[ref]] = row
    return after


def _shared_memory(
    record: GraphRecord, refs: list[list[int]], written: dict[int, list[int]], bodies: Bodies
) -> list[int]:
    """For each row, the first row of those that may share memory with it."""
    parent = list(range(len(refs)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    nested = {row for row, node in enumerate(record.nodes) if node.op == "get_attr"}
    for row, node in enumerate(record.nodes):
        shared = list(written.get(row, ()))
        if node.target in _OF_ANY or (nested and not nested.isdisjoint(refs[row])):
            shared += [ref for ref in refs[row] if ref not in nested]
        elif node.target in bodies.traits.views:
            args = json.loads(node.args)
            shared += refs[row][: _count_refs(args[0])] if args else refs[row]
        for ref in shared:
            one, other = sorted((root(ref), root(row)))
            parent[other] = one
    return [root(row) for row in range(len(refs))]


def _written(record: GraphRecord, row: int, refs: list[int], bodies: Bodies) -> list[int]:
    """The rows that an effectful row writes. A nested graph that writes anything may write all it is given."""
    node = record.nodes[row]
    if graphs := [record.nodes[ref].target for ref in refs if record.nodes[ref].op == "get_attr"]:
        called = [record.bodies[int(target.removeprefix("body_"))] for target in graphs]
        given = [ref for ref in refs if record.nodes[ref].op != "get_attr"]
        return given if any(_writes(body, bodies) for body in called) else []
    args, kwargs = json.loads(node.args), json.loads(node.kwargs)
    opaque = object()

    def seen(data: Any) -> Any:
        return opaque if isinstance(data, str | list | dict) else data

    wanted = bodies.traits.written(node.target, [seen(a) for a in args], {k: seen(v) for k, v in kwargs.items()})
    found: list[int] = []
    position = 0
    for name, value in [*enumerate(args), *sorted(kwargs.items())]:
        count = _count_refs(value)
        if name in wanted:
            found.extend(refs[position : position + count])
        position += count
    return found


def _writes(record: GraphRecord, bodies: Bodies) -> bool:
    """Whether a graph writes any of its values."""
    return any(
        _written(record, row, [row - distance for distance in bodies.of(node).refs], bodies)
        for row, node in enumerate(record.nodes)
        if node.effect is not None
    )


def _count_refs(data: Any) -> int:
    if isinstance(data, str):
        return 1
    if isinstance(data, list):
        return sum(_count_refs(v) for v in data)
    if isinstance(data, dict):
        return sum(_count_refs(v) for k, v in data.items() if k in ("tuple", "size", "slice", "dict"))
    return 0
