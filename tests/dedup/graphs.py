"""Small graph records for tests: a builder that writes references, random DAGs, and ways to rewrite a record that
must not (or must) change its hashes."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

from hypothesis import strategies as st

from warehouse.graph.record import GraphRecord, Node

REF = re.compile(r'"%(\d+)"')


class Builder:
    """Adds rows by absolute number and writes them as relative references."""

    def __init__(self):
        self.rows: list[Node] = []
        self.effects = 0

    def add(self, op, target="", args=(), kwargs=None, effect=False, **fields):
        here = len(self.rows)

        def data(value):
            if isinstance(value, At):
                return f"%{here - value.row}"
            if isinstance(value, list):
                return [data(v) for v in value]
            return value

        fields.setdefault("dtype", "float32")
        fields.setdefault("shape", (2, 3))
        if effect:
            fields["effect"] = self.effects
            self.effects += 1
        named = {k: data(v) for k, v in sorted((kwargs or {}).items())}
        self.rows.append(Node(op, target, json.dumps([data(a) for a in args]), json.dumps(named), **fields))
        return At(here)

    def input(self, **fields):
        slot = sum(n.op == "placeholder" for n in self.rows)
        return self.add("placeholder", slot=slot, role="input", name=f"x{slot}", **fields)

    def call(self, target, *args, effect=False, kwargs=None, **fields):
        op = "call_method" if target.startswith("torch.Tensor.") else "call_function"
        return self.add(op, target, args, kwargs, effect, **fields)

    def output(self, *values):
        self.add("output", "", [list(values)], value="none", dtype=None, shape=None)
        return GraphRecord(tuple(self.rows))


class At:
    """A row of a record under construction."""

    def __init__(self, row):
        self.row = row


UNARY = ["torch.relu", "torch.sigmoid", "torch.Tensor.exp"]
ORDERED = ["operator.sub", "torch.div", "torch.Tensor.pow"]
COMMUTATIVE = ["operator.add", "torch.mul", "torch.maximum"]


@st.composite
def records(draw, most=12):
    """Random graphs of pure operators in which every operand is an earlier row or a number."""
    build = Builder()
    values = [build.input(shape=draw(st.sampled_from([(2, 3), (3,)]))) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, most))):
        target = draw(st.sampled_from(UNARY + ORDERED + COMMUTATIVE))
        first = draw(st.sampled_from(values))
        if target in UNARY:
            values.append(build.call(target, first))
        else:
            second = draw(st.one_of(st.sampled_from(values), st.sampled_from([0.5, 2])))
            values.append(build.call(target, first, second))
    chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return build.output(*chosen)


@st.composite
def tangles(draw, most=14, effects=False):
    """Graphs of equal inputs and few operators, nearly all commutative: rows that only their place tells apart abound.

    effects: with in-place additions, views and random operators among them.
    """
    build = Builder()
    values = [build.input() for _ in range(draw(st.integers(2, 5)))]
    targets = ["operator.add"] * 4 + ["torch.relu", "operator.sub"]
    targets += ["torch.Tensor.add_", "torch.Tensor.view", "torch.rand_like"] if effects else []
    for _ in range(draw(st.integers(2, most))):
        target = draw(st.sampled_from(targets))
        first, second = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        operands = {"torch.relu": [first], "torch.rand_like": [first], "torch.Tensor.view": [first, -1]}
        effect = target in ("torch.Tensor.add_", "torch.rand_like")
        values.append(build.call(target, *operands.get(target, [first, second]), effect=effect))
    return build.output(*draw(st.lists(st.sampled_from(values), min_size=1, max_size=2)))


def in_order(record):
    """Pairs of rows of a tangle that must keep their order: effects, and whatever reads what an in-place row writes."""
    memory = list(range(len(record.nodes)))
    for row, node in enumerate(record.nodes):
        if node.target in ("torch.Tensor.view", "torch.Tensor.add_"):
            memory[row] = memory[references(node, row)[0]]
    effects = [row for row, node in enumerate(record.nodes) if node.effect is not None]
    pairs = list(zip(effects, effects[1:], strict=False))
    for write in effects:
        if record.nodes[write].target == "torch.Tensor.add_":
            for row, node in enumerate(record.nodes):
                if row != write and memory[write] in [memory[r] for r in references(node, row)]:
                    pairs.append((min(row, write), max(row, write)))
    return pairs


def rewritten(record, random):
    """The same graph written down another way: operands commuted, rows reordered, inputs renamed."""
    for row, node in enumerate(record.nodes):
        if node.target in COMMUTATIVE and random.random() < 0.5:
            record = swapped(record, row)
    return permuted_inputs(shuffled(record, random, in_order(record)), random)


def edited(record, draw):
    """The record with one thing changed in one row, which one and how drawn by hypothesis; None if that cannot be."""
    row = draw(st.sampled_from([i for i, n in enumerate(record.nodes) if n.op != "output"]))
    node = record.nodes[row]
    args = json.loads(node.args)
    kind = draw(st.sampled_from(["operator", "constant", "dtype", "shape", "position", "wiring"]))
    if kind == "operator" and node.op != "placeholder":
        target = draw(st.sampled_from(next(f for f in (UNARY, ORDERED, COMMUTATIVE) if node.target in f)))
        op = "call_method" if target.startswith("torch.Tensor.") else "call_function"
        node = replace(node, target=target, op=op)
    elif kind == "constant":
        node = replace(node, args=json.dumps([a if isinstance(a, str) else a + 1 for a in args]))
    elif kind == "dtype":
        node = replace(node, dtype="bfloat16")
    elif kind == "shape":
        node = replace(node, shape=(5, 7))
    elif kind == "position" and len(args) == 2:
        node = replace(node, args=json.dumps(args[::-1]))
    elif kind == "wiring" and args and row > 1:
        node = replace(node, args=json.dumps([f"%{draw(st.integers(1, row))}", *args[1:]]))
    else:
        return None
    return record.with_nodes((*record.nodes[:row], node, *record.nodes[row + 1 :]))


def every_graph(inputs, calls):
    """All graphs of so many equal inputs and calls of relu, add and sub that give back whatever nothing uses."""
    for targets in itertools.product(("torch.relu", "operator.add", "operator.sub"), repeat=calls):
        choices = [
            itertools.product(range(inputs + i), repeat=1 if target == "torch.relu" else 2)
            for i, target in enumerate(targets)
        ]
        for operands in itertools.product(*choices):
            build = Builder()
            values = [build.input() for _ in range(inputs)]
            for target, chosen in zip(targets, operands, strict=True):
                values.append(build.call(target, *(values[i] for i in chosen)))
            used = set(itertools.chain(*operands))
            yield build.output(*(v for i, v in enumerate(values) if i not in used))


def references(node, row):
    return [row - int(k) for k in REF.findall(node.args + node.kwargs)]


def reordered(record, order):
    """The record with its rows in another order (a list of old row numbers), references rewritten."""
    place = {old: new for new, old in enumerate(order)}
    rows = []
    for new, old in enumerate(order):
        node = record.nodes[old]

        def moved(match, new=new, old=old):
            return f'"%{new - place[old - int(match.group(1))]}"'

        rows.append(replace(node, args=REF.sub(moved, node.args), kwargs=REF.sub(moved, node.kwargs)))
    return GraphRecord(tuple(rows), record.bodies)


def shuffled(record, random, before=()):
    """A random topological order; `before` lists further (earlier row, later row) pairs to keep."""
    last = len(record.nodes) - 1
    needs = {row: set(references(node, row)) for row, node in enumerate(record.nodes)}
    needs[last] |= set(range(last))
    for early, late in before:
        needs[late].add(early)
    order, done = [], set()
    while len(order) <= last:
        ready = [row for row in needs if row not in done and needs[row] <= done]
        row = random.choice(ready)
        order.append(row)
        done.add(row)
    return reordered(record, order)


def permuted_inputs(record, random):
    """Another call order, other names."""
    rows = list(record.nodes)
    at = [i for i, n in enumerate(rows) if n.op == "placeholder"]
    slots = list(range(len(at)))
    random.shuffle(slots)
    for row, slot in zip(at, slots, strict=True):
        rows[row] = replace(rows[row], slot=slot, name=f"renamed_{slot}", role="parameter", recipe="{}")
    return record.with_nodes(tuple(rows))


def swapped(record, row):
    """The first two arguments of a row exchanged."""
    node = record.nodes[row]
    args = json.loads(node.args)
    args[0], args[1] = args[1], args[0]
    rows = list(record.nodes)
    rows[row] = replace(node, args=json.dumps(args))
    return record.with_nodes(tuple(rows))


def isomorphic(a, b):
    """Exact and slow: whether some matching of rows makes the two records equal (no effects, no nesting)."""
    if len(a.nodes) != len(b.nodes):
        return False

    def says(node):
        return (node.op, node.target, REF.sub('"%"', node.args), node.kwargs, node.dtype, node.shape)

    def fits(row, other, match):
        x, y = a.nodes[row], b.nodes[other]
        left, right = [match[r] for r in references(x, row)], references(y, other)
        if says(x) == says(y) and left == right:
            return True
        if x.target not in COMMUTATIVE or x.target != y.target or (x.dtype, x.shape) != (y.dtype, y.shape):
            return False
        numbers = [v for v in json.loads(x.args) if not isinstance(v, str)]
        return sorted(left) == sorted(right) and numbers == [v for v in json.loads(y.args) if not isinstance(v, str)]

    def search(row, match, taken):
        if row == len(a.nodes):
            return True
        for other in range(len(b.nodes)):
            if other not in taken and fits(row, other, match):
                match[row] = other
                if search(row + 1, match, taken | {other}):
                    return True
                del match[row]
        return False

    return search(0, {}, frozenset())
