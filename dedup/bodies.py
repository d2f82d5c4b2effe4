"""One row of a graph record as a hash sees it: what it says at each level, and which rows it refers to.

In: a `Node`. Out: a `Body`: three keys (template, structure, graph), the distances of its references, and whether its
first two operands may change places. Rows repeat enormously, so bodies are remembered.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import xxhash

from warehouse.graph.record import Node

#: Kinds of value whose operators commute; tuples, for one, are concatenated by `operator.add`.
_NUMERIC = {"tensor", "symint", "symfloat", "symbool"}
_REMEMBERED = 1 << 18


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

    def of(self, node: Node) -> Body:
        """The body of a row. Its names, strides, device, recipe, role and slot are not part of it."""
        sizes = node.shape if node.expr is None else None  # example values of symbolic sizes say nothing
        key = (node.op, node.target, node.args, node.kwargs, node.value, node.dtype, sizes, node.elements)
        body = self._known.get(key)
        if body is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            body = self._known[key] = self._made(node, sizes)
        return body

    def _made(self, node: Node, sizes: tuple[int, ...] | None) -> Body:
        kind = f"{node.op}\0{node.target}\0{node.value}\0"
        meta = f"\0{node.dtype}\0{sizes}\0{node.elements}"
        if node.op == "constant":
            return Body(_digest(kind), _digest(kind), _digest(kind + node.args + meta), (), False)
        words = _Words()
        args = [words.read(a) for a in json.loads(node.args)]
        commutes = False
        if len(args) >= 2 and node.target in self.traits.commutative and node.value in _NUMERIC:
            commutes = _operands_swap(args, node.kwargs)
        keywords = [(k, words.read(v)) for k, v in sorted(json.loads(node.kwargs).items())]
        texts = []
        for level in range(3):
            positional = ",".join(a[level] for a in args)
            named = ",".join(f"{k}={v[level]}" for k, v in keywords)
            texts.append(f"{kind}{positional}\0{named}")
        both = commutes and args[0][2] == args[1][2] == "%"
        return Body(_digest(texts[0]), _digest(texts[1]), _digest(texts[2] + meta), tuple(words.refs), both)


def _operands_swap(args: list[tuple[str, str, str]], kwargs: str) -> bool:
    """Whether the first two arguments are plain operands; a literal before a reference is put behind it."""
    if '"alpha"' in kwargs or any(a[2][:1] in "[{" for a in args[:2]):
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


def _digest(text: str) -> bytes:
    return xxhash.xxh3_128_digest(text.encode())
