"""What values a row can hold, read off the operators that make them; and recipes for rows that become inputs.

A subgraph's input is often the result of a softmax, a relu or a comparison. Fed with plain normal numbers it would see
what no run of the model could show it, so a recipe says what the producer says: bounds, followed through views,
casts, arithmetic and reductions by interval rules that are exact or wider than the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from extract.subgraphs.wiring import decoded, is_call
from warehouse.graph import operators
from warehouse.graph.literals import DTYPES, loads
from warehouse.graph.record import GraphRecord
from warehouse.graph.validate import Reference

INF = math.inf


@dataclass(frozen=True, slots=True)
class Range:
    """Closed bounds of a row's values. mean: typical value where the bounds do not tell; additive: an additive mask."""

    low: float = -INF
    high: float = INF
    mean: float | None = None
    additive: bool = False


ANY = Range()
_FIXED = {
    "sigmoid": Range(0, 1), "hardsigmoid": Range(0, 1), "tanh": Range(-1, 1), "sin": Range(-1, 1),
    "cos": Range(-1, 1), "erf": Range(-1, 1), "erfc": Range(0, 2), "normalize": Range(-1, 1),
    "cosine_similarity": Range(-1, 1), "sign": Range(-1, 1), "softsign": Range(-1, 1), "relu": Range(0, INF),
    "relu6": Range(0, 6), "exp": Range(0, INF, 1.0), "exp2": Range(0, INF, 1.0), "softplus": Range(0, INF, 1.0),
    "square": Range(0, INF), "abs": Range(0, INF), "sqrt": Range(0, INF), "rsqrt": Range(0, INF, 1.0),
    "std": Range(0, INF, 1.0), "var": Range(0, INF, 1.0), "norm": Range(0, INF, 1.0),
    "vector_norm": Range(0, INF, 1.0), "matrix_norm": Range(0, INF, 1.0), "frobenius_norm": Range(0, INF, 1.0),
    "cdist": Range(0, INF, 1.0), "elu": Range(-1, INF), "selu": Range(-1.76, INF), "silu": Range(-0.279, INF),
    "gelu": Range(-0.171, INF), "hardswish": Range(-0.376, INF), "mish": Range(-0.309, INF),
    "log_softmax": Range(-INF, 0), "logsigmoid": Range(-INF, 0), "log_sigmoid": Range(-INF, 0),
    "one_hot": Range(0, 1), "bernoulli": Range(0, 1), "rand": Range(0, 1), "rand_like": Range(0, 1),
    "expm1": Range(-1, INF), "count_nonzero": Range(0, INF), "zeros": Range(0, 0), "zeros_like": Range(0, 0),
    "ones": Range(1, 1), "ones_like": Range(1, 1),
}  # fmt: skip
#: The result holds values of the first argument, or averages, maxima or subsets of them.
_KEEPS = {
    "mean", "amax", "amin", "max", "min", "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "roll", "flip",
    "repeat", "tile", "repeat_interleave", "clone", "index_select", "gather", "take_along_dim", "sort", "topk",
    "cummax", "median", "broadcast_tensors", "nan_to_num",
}  # fmt: skip
_POOLS_WITH_ZEROS = {"avg_pool1d", "avg_pool2d", "avg_pool3d", "pad", "tril", "triu", "unfold"}


def ranges(record: GraphRecord) -> list[Range]:
    """One range a row of the outermost graph; ANY where nothing is known."""
    found: list[Range] = []
    for i, node in enumerate(record.nodes):
        if is_call(node) and node.value in ("tensor", "tuple"):
            args, kwargs = decoded(record, i)
            found.append(_of_call(record, i, args, kwargs, found))
        else:
            found.append(_stated(node.recipe))
    return found


def _stated(recipe: str | None) -> Range:
    """The bounds that a placeholder's own recipe gives."""
    stated = loads(recipe) if recipe else {}
    kind = stated.get("kind") if isinstance(stated, dict) else None
    if kind == "probability" or (kind == "mask" and stated.get("form") != "additive"):
        return Range(0, 1)
    if kind == "mask":
        return Range(-INF, 0, additive=True)
    return Range(0, INF) if kind == "positive" else ANY


def _of_call(record: GraphRecord, i: int, args: list[Any], kwargs: dict[str, Any], known: list[Range]) -> Range:
    node = record.nodes[i]
    name = node.target.rpartition(".")[2]
    if name not in ("__len__",) and node.target in operators.MUTATING:
        name = name.rstrip("_")
    operands = [_operand(a, known) for a in args[:3]]
    first = operands[0] if operands else ANY
    if name in ("softmax", "softmin"):
        size = _dimension(record, args, kwargs)
        return Range(0, 1, 1 / size if size else None)
    if name in ("argmax", "argmin"):
        size = _dimension(record, args, kwargs)
        return Range(0, size - 1) if size else Range(0, INF)
    if name in ("clamp", "clip", "hardtanh", "clamp_min", "clamp_max"):
        return _clamped(name, first, args, kwargs)
    if name in ("masked_fill", "where") and _hides(args, kwargs):
        return Range(-INF, 0, additive=True)
    if name in _FIXED:
        return _FIXED[name]
    if name in _KEEPS or (node.target in operators.VIEWS and node.target not in operators.MUTATING):
        return first
    if name == "dropout":
        return first if node.effect is None else ANY
    if name in _POOLS_WITH_ZEROS:
        return Range(min(first.low, 0), max(first.high, 0), additive=first.additive)
    if name in ("sum", "cumsum", "prod"):
        return Range(0, INF) if first.low >= 0 else ANY
    if name in ("cat", "stack", "concat") and args and isinstance(args[0], list | tuple):
        parts = [_operand(a, known) for a in args[0]]
        return Range(min(p.low for p in parts), max(p.high for p in parts)) if parts else ANY
    return _arithmetic(name, operands, args)


def _operand(value: Any, known: list[Range]) -> Range:
    if isinstance(value, Reference):
        return known[value.row]
    if isinstance(value, int | float):
        return Range(float(value), float(value))
    return ANY


def _arithmetic(name: str, operands: list[Range], args: list[Any]) -> Range:
    name = name.strip("_").removeprefix("i") if name in ("iadd", "imul", "isub", "itruediv") else name.strip("_")
    if name == "neg" and operands:
        return Range(-operands[0].high, -operands[0].low)
    if len(operands) < 2:
        return ANY
    a, b = operands[:2]
    if name == "add":
        return Range(a.low + b.low, a.high + b.high, additive=a.additive or b.additive)
    if name in ("sub", "subtract"):
        return Range(a.low - b.high, a.high - b.low)
    if name in ("mul", "div", "truediv") and a.low >= 0 and b.low >= 0:
        bounded = name == "mul" and a.high < INF and b.high < INF
        return Range(0, a.high * b.high if bounded else INF)
    if (
        name == "mul"
        and isinstance(args[0], Reference)
        and isinstance(args[1], Reference)
        and args[0].row == args[1].row
    ):
        return Range(0, INF)
    if name == "pow" and isinstance(args[1], int | float) and args[1] % 2 == 0:
        return Range(0, INF, 1.0 if args[1] < 0 else None)
    return ANY


def _clamped(name: str, first: Range, args: list[Any], kwargs: dict[str, Any]) -> Range:
    low = kwargs.get("min", kwargs.get("min_val", args[1] if len(args) > 1 and name != "clamp_max" else None))
    high_at = 1 if name == "clamp_max" else 2
    high = kwargs.get("max", kwargs.get("max_val", args[high_at] if len(args) > high_at else None))
    if name == "hardtanh":
        low, high = (-1.0 if low is None else low), (1.0 if high is None else high)
    bottom = max(first.low, float(low)) if isinstance(low, int | float) else first.low
    top = min(first.high, float(high)) if isinstance(high, int | float) else first.high
    return Range(bottom, top) if bottom <= top else ANY


def _hides(args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a literal so low is put in that softmax gives it nothing."""
    values = [*args[1:], kwargs.get("value", 0), kwargs.get("other", 0)]
    return any(isinstance(v, int | float) and not isinstance(v, bool) and v <= -1e4 for v in values)


def _dimension(record: GraphRecord, args: list[Any], kwargs: dict[str, Any]) -> int | None:
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    shape = (record.nodes[args[0].row].shape or ()) if args and isinstance(args[0], Reference) else ()
    if isinstance(dim, int) and -len(shape) <= dim < len(shape):
        return max(shape[dim], 1)
    return max(math.prod(shape), 1) if dim is None and shape else None


def within(recipe: Mapping[str, Any], held: Range, dtype: str | None) -> dict[str, Any]:
    """`recipe`, as inferred from who reads a value, brought inside the bounds that its maker sets."""
    kind = DTYPES.get(dtype or "")
    if held == ANY or kind is None or kind.is_complex or dtype == "bool":
        return dict(recipe)
    if not kind.is_floating_point:
        guessed = recipe.get("kind") == "index" and (recipe.get("low"), recipe.get("high")) == (0, 2)
        if guessed and held.low >= 0 and held.high < 2**31:
            return {"kind": "index", "low": int(held.low), "high": int(held.high) + 1}
        return dict(recipe)
    if held.additive:
        return {"kind": "mask", "form": "additive"}
    low, high = held.low, held.high
    if low == high:
        return {"kind": "constant", "value": low}
    if low >= 0 and recipe.get("kind") in ("positive", "probability"):
        if high == INF or (low, high) == (0, 1) and recipe["kind"] == "probability":
            return dict(recipe)
        mean = held.mean if held.mean is not None else (low + high) / 2
        return {"kind": "normal", "mean": mean, "std": mean / 2, "low": max(low, mean / 10), "high": high}
    if low == -INF or high == INF:
        near = held.mean if held.mean is not None else (max(low, 0.0) if high == INF else min(high, 0.0))
        return {"kind": "normal", "mean": near, "std": 1.0, "low": max(low, near - 10), "high": min(high, near + 10)}
    if held.mean is None:
        if (low, high) == (0, 1):
            return {"kind": "probability"}
        return {"kind": "normal", "mean": (low + high) / 2, "std": (high - low) / 4, "low": low, "high": high}
    return {"kind": "normal", "mean": held.mean, "std": held.mean / 2, "low": max(low, held.mean / 10), "high": high}
