"""One row of a graph record as a hash sees it: what it says at each level, and which rows it refers to.

In: a `Node`. Out: a `Body`: three keys (template, structure, graph), the distances of its references, and whether its
first two operands may change places; and a key of the result's dtype and sizes, which count in graph_hash alone. Rows
repeat enormously, so both are remembered.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import xxhash

from dedup.symbols import blank
from warehouse.graph.record import Node

#: Kinds of value whose operators commute; tuples, for one, are concatenated by `operator.add`.
_NUMERIC = {"tensor", "symint", "symfloat", "symbool"}
_REMEMBERED = 1 << 16


@dataclass(frozen=True, slots=True)
class Traits:
    """What hashing must know of operators.

    commutative   targets whose first two operands may change places
    views         targets whose result may share memory with their first argument
    regions       targets that switch a mode (autocast, grad, vmap) for the rows that follow
    written       (target, args, kwargs) -> positions and keywords of the arguments that a call writes
    """

    commutative: frozenset[str]
    views: frozenset[str]
    regions: frozenset[str]
    written: Callable[[str, list[Any], dict[str, Any]], tuple[int | str, ...]]


@dataclass(frozen=True, slots=True)
class Body:
    """template, structure, graph: 16-byte keys of what the row says at each level, references left out.

    refs         distances to the rows referred to, in argument order
    commutes     whether the first two references are operands that may change places
    """

    template: bytes
    structure: bytes
    graph: bytes
    refs: tuple[int, ...]
    commutes: bool


class Bodies:
    """Makes and remembers bodies for one set of traits."""

    def __init__(self, traits: Traits):
        self.traits = traits
        self._known: dict[Any, Body] = {}
        self._results: dict[Any, bytes] = {}

    def of(self, node: Node) -> Body:
        """What a row does. What it gives is told by `result`; names, role and slot are no part of either."""
        key = (node.op, node.target, node.args, node.kwargs, node.value)
        body = self._known.get(key)
        if body is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            body = self._known[key] = self._made(node)
        return body

    def result(self, node: Node, symbolic: bool) -> bytes:
        """Dtype and sizes of what a row gives, as a 16-byte key. Strides, device and recipe are no part of it.

        symbolic: some size of the graph is a symbol. The example values of such sizes say nothing, and the sizes of a
        tuple's members, which have no expressions, may be examples.
        """
        sizes = node.shape if node.expr is None else blank(node.expr)
        elements = _ranks(node.elements) if symbolic and node.elements else node.elements
        key = (node.dtype, sizes, elements)
        result = self._results.get(key)
        if result is None:
            if len(self._results) >= _REMEMBERED:
                self._results.clear()
            result = self._results[key] = _digest(f"{node.dtype}\0{sizes!r}\0{elements!r}")
        return result

    def _made(self, node: Node) -> Body:
        kind = f"{node.op}\0{node.target}\0{node.value}\0"
        if node.op == "constant":  # its bytes say what its dtype and sizes are, which structure_hash must not know
            return Body(_digest(kind), _digest(kind), _digest(kind + node.args), (), False)
        words = _Words()
        data = [] if node.args == "[]" else json.loads(node.args)
        named = {} if node.kwargs == "{}" else json.loads(node.kwargs)
        operator = node.target in self.traits.commutative and node.value in _NUMERIC
        if operator:  # add(x, other=y) is add(x, y)
            data += [named.pop(k) for k in ("input", "other")[len(data) :] if k in named]
        args = [words.read(a) for a in data]
        keywords = [(k, words.read(v)) for k, v in sorted(named.items())]
        commutes = operator and len(args) >= 2 and "alpha" not in named and _operands_swap(args)
        said = [
            ",".join([a[level] for a in args]) + "\0" + ",".join([f"{k}={v[level]}" for k, v in keywords])
            for level in range(3)
        ]
        template, structure, graph = (_digest(kind + text) for text in said)
        both = commutes and args[0][2] == args[1][2] == "%"
        return Body(template, structure, graph, tuple(words.refs), both)


def _operands_swap(args: list[tuple[str, str, str]]) -> bool:
    """Whether the first two arguments are plain operands; a literal before a reference is put behind it."""
    if any(a[2][0] in "[{" for a in args[:2]):
        return False
    if args[1][2] == "%" and args[0][2] != "%":
        args[0], args[1] = args[1], args[0]
    return True


class _Words:
    """Arguments as text at the three levels; collects references on the way."""

    def __init__(self) -> None:
        self.refs: list[int] = []

    def read(self, data: Any) -> tuple[str, str, str]:
        if data is None or isinstance(data, bool):
            return (str(data),) * 3
        if isinstance(data, int | float):
            return "#", repr(data), repr(data)
        if isinstance(data, str):
            self.refs.append(int(data[1:]))
            return ("%",) * 3
        if isinstance(data, list):
            return self._many(data)
        ((tag, body),) = data.items()
        if tag in ("tuple", "size"):  # operators take lists, tuples and sizes alike
            return self._many(body)
        if tag == "slice":
            return tuple(f"slice{text}" for text in self._many(body))  # type: ignore[return-value]
        if tag == "dict":
            return tuple(f"{{{text}}}" for text in self._many(body))  # type: ignore[return-value]
        text = json.dumps(data, sort_keys=True)
        if tag in ("float", "complex"):
            return "#", text, text
        if tag == "dtype":
            return "dtype", "dtype", text
        if tag == "device":
            return "device", "device", "device " + str(body).split(":")[0]
        return (text,) * 3

    def _many(self, items: list[Any]) -> tuple[str, str, str]:
        read = [self.read(v) for v in items]
        return tuple("[" + ",".join(r[level] for r in read) + "]" for level in range(3))  # type: ignore[return-value]


@lru_cache(1 << 12)
def _ranks(elements: str) -> str:
    """The members of a tuple by dtype and number of dimensions."""
    return str([member and (member[0], len(member[1])) for member in json.loads(elements)])


def _digest(text: str) -> bytes:
    return xxhash.xxh3_128_digest(text.encode())
