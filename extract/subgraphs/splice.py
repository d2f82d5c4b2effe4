"""Putting a subgraph, or what replaces it, back into its parent; and the proof that cutting lost nothing.

`splice` gives the parent's record with the subgraph's rows replaced. `runs_as_in_parent` runs the parent as captured
on drawn inputs, keeps what goes into and comes out of each subgraph there, runs each subgraph alone on the former and
wants the latter back bit for bit, on one and the same device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from extract.subgraphs.carve import Parent, Subgraph, rewired
from extract.subgraphs.pure import purified, renumbered
from extract.subgraphs.wiring import wire
from warehouse.graph.devices import on_device
from warehouse.graph.inputs import draw
from warehouse.graph.literals import loads
from warehouse.graph.record import GraphRecord, Node
from warehouse.graph.to_fx import to_graph_module


def splice(parent: GraphRecord, subgraph: Subgraph, replacement: GraphRecord | None = None) -> GraphRecord:
    """`parent` with the rows of `subgraph` replaced by those of `replacement` (by default its own record).

    The replacement takes the subgraph's inputs in slot order and yields as many outputs. Rows are reordered where they
    must be; the call signature stays. ValueError where the signatures do not fit.
    """
    new = subgraph.record if replacement is None else replacement
    if len(new.placeholders()) != len(subgraph.inputs) or len(_outputs(new)) != len(subgraph.outputs):
        raise ValueError(
            f"a replacement of {len(new.placeholders())} inputs and {len(_outputs(new))} outputs for a subgraph of "
            f"{len(subgraph.inputs)} and {len(subgraph.outputs)}"
        )
    ready = Parent.of(parent)
    rows: list[Node] = []
    place: dict[int, int] = {}
    bodies = [*ready.record.bodies, *new.bodies]
    for row in _order(ready, subgraph):
        if row is not None:
            place[row] = len(rows)
            rows.append(rewired(ready.record.nodes[row], row, place[row], place))
            continue
        given = dict(zip((i for i, _ in new.placeholders()), (place[r] for r in subgraph.inputs), strict=True))
        for i, node in enumerate(new.nodes[:-1]):
            if node.op == "placeholder":
                continue
            given[i] = len(rows)
            if node.op == "get_attr":
                number = int(node.target.removeprefix("body_")) + len(ready.record.bodies)
                node = replace(node, target=f"body_{number}")
            rows.append(rewired(node, i, given[i], given))
        last = len(new.nodes) - 1
        place.update(zip(subgraph.outputs, (given[last - k] for k in _outputs(new)), strict=True))
    return renumbered(GraphRecord(tuple(rows), tuple(bodies)))


def _outputs(record: GraphRecord) -> list[int]:
    """How many rows above the output each output value stands."""
    (given,) = loads(record.nodes[-1].args)
    values = given["tuple"] if isinstance(given, dict) else given if isinstance(given, list) else [given]
    return [int(v[1:]) for v in values]


def _order(parent: Parent, subgraph: Subgraph) -> Iterator[int | None]:
    """Rows to keep, each after what it depends on; None where the subgraph's place is. The output comes last."""
    nodes, wiring = parent.record.nodes, parent.wiring
    inside = frozenset(subgraph.rows)
    block = max(inside)  # stands for all of them
    done: set[int] = set()

    def wanted(row: int) -> set[int]:
        if row != block:
            return {block if b in inside else b for b in wiring.before[row] if b in parent.live}
        outside = {b for r in inside for b in wiring.before[r] if b in parent.live - inside and not wiring.scalar[b]}
        return outside.union(subgraph.inputs)

    placeholders = [r for r, n in enumerate(nodes) if n.op == "placeholder"]
    effects = [r for r, n in enumerate(nodes) if n.effect is not None and r not in inside]
    bodies = [r for r, n in enumerate(nodes) if n.op == "get_attr"]
    last = len(nodes) - 1
    first = sorted({*effects, *bodies, *wiring.refs[last], block} - inside | {block})
    for start in [*first, *placeholders, last]:
        waiting = [block if start in inside else start]
        while waiting:
            row = waiting[-1]
            missing = sorted(r for r in wanted(row) if r not in done)
            if row in done or not missing:
                waiting.pop()
                if row not in done:
                    done.add(row)
                    yield None if row == block else row
            else:
                waiting.append(missing[0])


def runs_as_in_parent(
    record: GraphRecord, subgraphs: Sequence[Subgraph], seed: int = 0, device: str = "cpu"
) -> list[str | None]:
    """For each subgraph of `record`: None when it gives, alone, the bits it gave in its parent; else what differs.

    The parent runs on the values that its recipes draw from `seed`. Nothing is caught: an operator that this device
    lacks raises what torch raises.
    """
    record = on_device(record, device)
    watch = _Watch(record, subgraphs)
    torch.manual_seed(seed)
    with torch.no_grad():
        watch.run(device, draw(record, seed, device))
        return [
            _difference(to_graph_module(on_device(s.record, device)).to(device), s, inputs, outputs)
            for s, inputs, outputs in zip(subgraphs, watch.inputs, watch.outputs, strict=True)
        ]


class _Watch:
    """Runs the parent row by row, and copies what each subgraph reads and yields, at the moment it does."""

    def __init__(self, record: GraphRecord, subgraphs: Sequence[Subgraph]):
        self.module = to_graph_module(record)
        self.fx_nodes = dict(zip(_rows_in_call_order(record), self.module.graph.nodes, strict=True))
        self.inputs: list[dict[int, Any]] = [dict.fromkeys(s.inputs) for s in subgraphs]
        self.outputs: list[dict[int, Any]] = [dict.fromkeys(s.outputs) for s in subgraphs]
        self.before: dict[fx.Node, list[tuple[int, int]]] = {}
        self.after: dict[fx.Node, list[tuple[int, int]]] = {}
        wiring = wire(purified(record))  # a write that nobody sees does not count: its subgraph does not make it
        for k, subgraph in enumerate(subgraphs):
            inside = set(subgraph.rows)
            for row in subgraph.inputs:  # just before the first row inside that reads it, itself or through a size
                reader = min(_readers(wiring.users, wiring.scalar, row, inside))
                self.before.setdefault(self.fx_nodes[reader], []).append((k, row))
            for row in subgraph.outputs:  # after the last write of its memory inside
                last = max([row, *(r for r in inside if wiring.memory[row] in wiring.writes[r])])
                self.after.setdefault(self.fx_nodes[last], []).append((k, row))

    def run(self, device: str, values: Sequence[Any]) -> None:
        """Call every operator of the parent in order on `values`, its inputs in slot order."""
        given = iter(values)
        held: dict[fx.Node, Any] = {}
        left = {node: len(node.users) for node in self.module.graph.nodes}
        for kept in (*self.inputs, *self.outputs):
            for row in kept:
                left[self.fx_nodes[row]] += 1  # never let go
        for node in self.module.graph.nodes:
            for k, row in self.before.get(node, ()):
                self.inputs[k][row] = _copied(held[self.fx_nodes[row]])
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), held.__getitem__)
            if node.op == "placeholder":
                held[node] = next(given)
            elif node.op == "get_attr":
                stored = getattr(self.module, node.target)
                held[node] = stored.to(device) if isinstance(stored, torch.Tensor) else stored
            elif node.op == "call_method":
                held[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
            elif node.op == "call_function":
                held[node] = node.target(*args, **kwargs)
            for k, row in self.after.get(node, ()):
                self.outputs[k][row] = _copied(held[self.fx_nodes[row]])
            for read in node.all_input_nodes:
                left[read] -= 1
                if not left[read]:
                    held.pop(read)


def _readers(users: Sequence[Sequence[int]], scalar: Sequence[bool], row: int, inside: set[int]) -> list[int]:
    found: list[int] = []
    for user in users[row]:
        if user in inside:
            found.append(user)
        elif scalar[user]:
            found.extend(_readers(users, scalar, user, inside))
    return found


def _rows_in_call_order(record: GraphRecord) -> list[int]:
    """Rows in the order in which `to_graph_module` makes their nodes."""
    return [r for r, _ in record.placeholders()] + [r for r, n in enumerate(record.nodes) if n.op != "placeholder"]


def _copied(value: Any) -> Any:
    """A tensor in memory of its own, with the strides it has: sums may depend on them."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or not value.numel():
        return value
    extent = 1 + sum((size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True))
    flat = value.as_strided((extent,), (1,), value.storage_offset()).clone()
    return flat.as_strided(value.shape, value.stride())


def _difference(module: fx.GraphModule, subgraph: Subgraph, given: dict[int, Any], kept: dict[int, Any]) -> str | None:
    before = {row: _copied(value) for row, value in given.items()}
    found = module(*(given[row] for row in subgraph.inputs))
    for row, value in zip(subgraph.outputs, found, strict=True):
        where = different_bits(kept[row], value)
        if where:
            return f"output of row {row}: {where}"
    for row in subgraph.inputs:
        if different_bits(before[row], given[row]):
            return f"the input from row {row} was written"
    return None


def different_bits(one: Any, other: Any) -> str | None:
    """None when two values are the same, tensors bit for bit; else in what they differ."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return None if type(one) is type(other) and one == other else f"{one!r:.40} against {other!r:.40}"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{one.dtype} {tuple(one.shape)} against {other.dtype} {tuple(other.shape)}"
    left, right = (t.detach().resolve_conj().resolve_neg().contiguous().reshape(-1) for t in (one, other))
    if torch.equal(left.view(torch.uint8), right.view(torch.uint8)):
        return None
    wrong = ~((left == right) | ((left != left) & (right != right)))
    return f"{int(wrong.sum())} of {left.numel()} elements differ"
