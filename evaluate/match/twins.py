"""Operators that are another one under a second name: each has one form here.

In goes a Call, out comes the Call that a pattern and a graph have in common: `x > y` is `y < x`, `torch.rsub(x, 1)` is
`1 - x`, `x.clamp_min(0)` is `x.clamp(min=0)`, `torch.max(x, y)` is `torch.maximum(x, y)`, `x.view(2, -1)` is
`x.reshape(2, -1)`, and everything that only exchanges dimensions is a permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx


@dataclass(frozen=True, slots=True)
class Order:
    """A permutation of dimensions as it was written: `kind` and its numbers. Its meaning may depend on the rank."""

    kind: str
    numbers: tuple[Any, ...] = ()

    @property
    def rank(self) -> int | None:
        """The only rank that it fits, where its spelling says so."""
        return len(self.numbers) if self.kind == "permute" else 2 if self.kind == "t" else None

    @property
    def exchanged(self) -> frozenset[Any] | None:
        """The two dimensions that it exchanges, as they were written; None where it does more."""
        return frozenset(self.numbers) if self.kind == "swap" else frozenset({-2, -1}) if self.kind == "mT" else None

    def of(self, rank: int) -> tuple[int, ...] | None:
        """Which dimension of the input each dimension of the result is; None where it does not fit."""
        try:
            if self.kind == "permute":
                found = tuple(d % rank for d in self.numbers) if len(self.numbers) == rank else ()
                return found if sorted(found) == list(range(rank)) else None
            places = list(range(rank))
            if self.kind in ("T", "t"):
                return tuple(reversed(places))
            first, second = (d % rank for d in (self.numbers if self.kind == "swap" else (-2, -1)))
            places[first], places[second] = places[second], places[first]
            return tuple(places)
        except (ZeroDivisionError, TypeError):
            return None

    def __repr__(self) -> str:
        return f"{self.kind}{self.numbers or ''}"


#: An operator's second name -> (its first, what becomes of its arguments; None: they stay).
_Twin = tuple[str, Callable[[Mapping[str, Any]], dict[str, Any] | None]]


def _exchanged(given: Mapping[str, Any]) -> dict[str, Any] | None:
    return {**given, "self": given["other"], "other": given["self"]} if {"self", "other"} <= set(given) else None


def _as_bound(name: str) -> Callable[[Mapping[str, Any]], dict[str, Any] | None]:
    return lambda given: {"self": given["self"], "min": None, "max": None, name: given[name]} if name in given else None


def _of_two(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """max(x, y) of two tensors; max(x, dim) is another operator."""
    return dict(given) if set(given) == {"self", "other"} else None


def _square(given: Mapping[str, Any]) -> dict[str, Any] | None:
    return {"self": given["self"], "exponent": 2}


def _shape(given: Mapping[str, Any]) -> dict[str, Any] | None:
    sizes = given.get("size", given.get("shape"))
    return {"self": given["self"], "shape": sizes} if isinstance(sizes, tuple) and len(given) == 2 else None


def _order(kind: str, *names: str) -> Callable[[Mapping[str, Any]], dict[str, Any] | None]:
    def made(given: Mapping[str, Any]) -> dict[str, Any] | None:
        values = [given.get(n) for n in names]
        numbers = tuple(values[0]) if kind == "permute" and isinstance(values[0], tuple) else tuple(values)
        plain = all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
        return {"self": given["self"], "dims": Order(kind, numbers)} if plain else None

    return made


_TWINS: dict[str, _Twin] = {
    "gt": ("lt", _exchanged),
    "ge": ("le", _exchanged),
    "rsub": ("sub", _exchanged),
    "clamp_min": ("clamp", _as_bound("min")),
    "clamp_max": ("clamp", _as_bound("max")),
    "max": ("maximum", _of_two),
    "min": ("minimum", _of_two),
    "square": ("pow", _square),
    "view": ("reshape", _shape),
    "reshape": ("reshape", _shape),
    "permute": ("permute", _order("permute", "dims")),
    "transpose": ("permute", _order("swap", "dim0", "dim1")),
    "swapdims": ("permute", _order("swap", "dim0", "dim1")),
    "swapaxes": ("permute", _order("swap", "axis0", "axis1")),
    "t": ("permute", _order("t")),
    "getattr.T": ("permute", _order("T")),
    "getattr.mT": ("permute", _order("mT")),
}


def canonical(key: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The first name of an operator and its arguments under that name."""
    twin = _TWINS.get(key)
    if twin is None or "self" not in arguments:
        return key, arguments
    made = twin[1](arguments)
    return (key, arguments) if made is None else (twin[0], made)


def sizes_of(value: Any) -> tuple[int, ...] | None:
    """The sizes of a graph value, where its graph knows them. Symbolic ones are None in it."""
    if not isinstance(value, fx.Node):
        return None
    shape = value.meta.get("shape")
    if shape is None:
        example = value.meta.get("example_value", value.meta.get("val"))
        shape = example.shape if isinstance(example, torch.Tensor) else None
    return None if shape is None else tuple(s if type(s) is int else None for s in shape)  # type: ignore[misc]
