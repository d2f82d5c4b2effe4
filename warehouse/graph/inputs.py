"""Valid inputs for a stored graph, without its weights: a value recipe for each placeholder, and values drawn from it.

`infer_recipes` writes the recipes, from what reads a placeholder, its role, name and dtype, and from statistics of
real tensors where capture saw any. `draw` makes tensors: the same seed gives the same values, placeholder by
placeholder, in whatever dtype.

A recipe is a JSON object; `kind` is one of
    normal       mean, std, and optional low, high that values are clamped to
    positive     mean, std; values are |mean + std * n|, at least mean / 10
    index        integers in [low, high); optional sorted: ascending along the last dimension
    values       these numbers, for small inputs that are sizes, offsets or constants rather than indices
    mask         form: `bool` or `binary` (1 and 0, each last dimension holding both), `additive` (0 and -10000)
    probability  uniform in [0.05, 0.95]
    arange       start, start + 1, ... along the last dimension
    constant     value everywhere
    symbol       value of a symbolic size
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from warehouse.graph.literals import DTYPES, dumps, loads
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graph.uses import Uses, is_integer

KINDS = ("normal", "positive", "index", "values", "mask", "probability", "arange", "constant", "symbol")
MAX_ELEMENTS = 2**33  # of all inputs that one `draw` makes
_SCALE = re.compile(r"(norm|bn|ln)[^.]*(\.\d+)*\.(weight|scale|gamma)$|(^|\.)(ln|bn|norm)\w*\.weight$")


def infer_recipes(record: GraphRecord, observed: Mapping[int, Mapping[str, Any]] | None = None) -> GraphRecord:
    """`record` with a recipe on every placeholder.

    observed: slot -> statistics of a real tensor: min, max, mean, std; is_arange of integers, and all their values
    where they are few. They win where they say more than the graph does.
    """
    uses = Uses(record)
    symbols = _symbol_values(record)
    rows = list(record.nodes)
    for row, node in record.placeholders():
        recipe = _recipe(row, node, uses, symbols, dict((observed or {}).get(node.slot or 0, {})))
        rows[row] = replace(node, recipe=dumps(recipe))
    return record.with_nodes(tuple(rows))


def _symbol_values(record: GraphRecord) -> dict[str, int]:
    """Example value of each symbol that stands alone as a size of some placeholder."""
    found: dict[str, int] = {}
    for _, node in record.placeholders():
        if node.expr and node.shape:
            for size, expr in zip(node.shape, node.expr.strip("[]").split(", "), strict=False):
                if re.fullmatch(r"[a-z]\d+", expr):
                    found.setdefault(expr, size)
    return found


def _recipe(row: int, node: Node, uses: Uses, symbols: dict[str, int], seen: dict[str, Any]) -> dict[str, Any]:
    if node.value != "tensor":
        value = symbols.get(node.expr or "", 1)
        return {"kind": "symbol", "value": float(value) if node.value == "symfloat" else value}
    if node.dtype == "bool":
        if seen and seen["min"] == seen["max"]:
            return {"kind": "constant", "value": int(seen["min"])}
        return {"kind": "mask", "form": "bool"}
    if is_integer(node):
        recipe = _integer_recipe(row, node, uses, seen)
        if recipe["kind"] == "index" and uses.indexes_by_differences(row):
            recipe["sorted"] = True  # corners of boxes: right minus left must not be negative
        return recipe
    return _float_recipe(row, node, uses, seen)


def _integer_recipe(row: int, node: Node, uses: Uses, seen: dict[str, Any]) -> dict[str, Any]:
    allowed = uses.index_range(row)
    if seen:
        low, high = int(seen["min"]), int(seen["max"]) + 1
        if seen.get("is_arange"):
            return {"kind": "arange", "start": low}
        if high - low == 1 and (allowed is None or node.role != "input"):
            return {"kind": "constant", "value": low}
        if allowed is None and "values" in seen:
            return {"kind": "values", "values": list(seen["values"])}
        if allowed is None:
            return {"kind": "index", "low": low, "high": high}
        if high - low > 1:
            low, high = max(low, allowed[0]), min(high, allowed[1])
            if low < high:
                return {"kind": "index", "low": low, "high": high}
    if allowed is not None:
        return {"kind": "index", "low": allowed[0], "high": allowed[1]}
    if "mask" in (node.name or ""):
        return {"kind": "mask", "form": "binary"}
    if node.role == "buffer":
        return {"kind": "constant", "value": 0}
    return {"kind": "index", "low": 0, "high": 2}


def _float_recipe(row: int, node: Node, uses: Uses, seen: dict[str, Any]) -> dict[str, Any]:
    name = node.name or ""
    if name.endswith("running_var"):
        return {"kind": "positive", "mean": 1.0, "std": 0.1}
    if name.endswith("running_mean"):
        return {"kind": "normal", "mean": 0.0, "std": 0.1}
    if seen:
        return _seen_float(seen)
    if node.shape == () and node.role == "input" and all(name == "item" for name, *_ in uses.consumers(row)):
        return {"kind": "constant", "value": 0.1}  # a Python float made an input: an eps, a probability, a scale
    domain = uses.domain(row)
    if domain == "probability" or "prob" in name.rpartition(".")[2]:
        return {"kind": "probability"}
    if node.role == "input":
        if "mask" in name:
            return {"kind": "mask", "form": "additive" if uses.is_attention_mask(row) else "binary"}
        return {"kind": "positive", "mean": 1.0, "std": 0.5} if domain else {"kind": "normal", "mean": 0.0, "std": 1.0}
    if domain or _SCALE.search(name) or _is_norm_weight(row, uses):
        return {"kind": "positive", "mean": 1.0, "std": 0.1}
    return {"kind": "normal", "mean": 0.0, "std": _weight_std(node, row, uses)}


def _seen_float(seen: dict[str, Any]) -> dict[str, Any]:
    low, high = float(seen["min"]), float(seen["max"])
    if low == high:
        return {"kind": "constant", "value": low}
    if low <= -1e4 and high <= 1e-6:
        return {"kind": "mask", "form": "additive"}
    return {"kind": "normal", "mean": float(seen["mean"]), "std": float(seen["std"]), "low": low, "high": high}


def _is_norm_weight(row: int, uses: Uses) -> bool:
    position = {"layer_norm": 2, "rms_norm": 2, "group_norm": 2, "batch_norm": 3, "instance_norm": 3}
    for name, _user, args, kwargs in uses.consumers(row):
        if name in position:
            weight = kwargs.get("weight", args[position[name]] if position[name] < len(args) else None)
            if getattr(weight, "row", None) == row:
                return True
    return False


def _weight_std(node: Node, row: int, uses: Uses) -> float:
    """1 / sqrt(fan in), so that activations keep their size through a deep graph."""
    shape = node.shape or ()
    if len(shape) < 2:
        return 0.05
    convolution = any(name.startswith("conv") for name, *_ in uses.consumers(row))
    fan_in = math.prod(shape[1:]) if convolution or len(shape) == 2 else max(shape[-2:])
    return 1.0 / math.sqrt(max(fan_in, 1))


def draw(
    record: GraphRecord, seed: int, device: str | torch.device = "cpu", dtype_override: torch.dtype | None = None
) -> list[Any]:
    """Values for the placeholders of `record` in call order: tensors, and ints or floats for symbols.

    dtype_override: a floating dtype that takes the place of every real floating one. Placeholders without a recipe get
    an inferred one. Raises RecordError("record_invalid") for a recipe that is not one, or more than 2**33 elements.
    """
    if any(node.recipe is None for _, node in record.placeholders()):
        record = infer_recipes(record)
    placeholders = [node for _, node in record.placeholders()]
    if sum(math.prod(node.shape or ()) for node in placeholders) > MAX_ELEMENTS:
        raise RecordError("record_invalid", f"inputs of more than {MAX_ELEMENTS} elements")
    return [_value(node, seed, device, dtype_override) for node in placeholders]


def _value(node: Node, seed: int, device: str | torch.device, dtype_override: torch.dtype | None) -> Any:
    recipe = loads(node.recipe or "null")
    try:
        if recipe["kind"] == "symbol":
            return float(recipe["value"]) if node.value == "symfloat" else int(recipe["value"])
        dtype = DTYPES[node.dtype or ""]
        if dtype_override is not None and dtype.is_floating_point:
            dtype = dtype_override
        shape = tuple(max(s, 1) if s < 0 else s for s in node.shape or ())
        stride = node.stride
        if stride is None:
            return _drawn(recipe, shape, dtype, seed, node.slot or 0).to(dtype).to(device)
        # Dimensions of stride 0 repeat one value; the rest is laid out as recorded.
        kept = tuple(1 if t == 0 else s for s, t in zip(shape, stride, strict=True))
        values = _drawn(recipe, kept, dtype, seed, node.slot or 0).to(dtype)
        extent = 1 + sum((s - 1) * t for s, t in zip(shape, stride, strict=True)) if math.prod(shape) else 0
        if extent > MAX_ELEMENTS:
            raise RecordError("record_invalid", f"an input that spans {extent} elements")
        storage = torch.zeros(extent, dtype=dtype)
        if _overlaps(kept, stride):
            storage.copy_(_drawn(recipe, (extent,), dtype, seed, node.slot or 0))
        else:
            storage.as_strided(kept, stride).copy_(values)
        return storage.to(device).as_strided(shape, stride)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError("record_invalid", f"placeholder {node.slot}: recipe {node.recipe!r:.80} ({error})") from error


def _overlaps(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether two elements of this layout share memory (dimensions of size 1 aside)."""
    reach = 0
    for step, size in sorted((t, s) for s, t in zip(shape, stride, strict=True) if s > 1):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def _drawn(recipe: dict[str, Any], shape: tuple[int, ...], dtype: torch.dtype, seed: int, slot: int) -> torch.Tensor:
    """Values of a recipe in float64 or int64, before the cast; a generator of its own for each (seed, slot)."""
    generator = torch.Generator().manual_seed((seed * 1_000_003 + slot * 7919 + 1) % 2**63)
    kind = recipe["kind"]
    if kind == "normal" and dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=torch.complex128) * float(recipe["std"]) + recipe["mean"]
    if kind == "normal":
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * float(recipe["std"]) + recipe["mean"]
        return values.clamp(recipe["low"], recipe["high"]) if "low" in recipe else values
    if kind == "positive":
        mean = float(recipe["mean"])
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * float(recipe["std"]) + mean
        return values.abs().clamp(min=mean / 10)
    if kind == "index":
        if recipe["low"] >= recipe["high"]:
            raise ValueError("an empty range")
        values = torch.randint(int(recipe["low"]), int(recipe["high"]), shape, generator=generator)
        return values.sort(dim=-1).values if recipe.get("sorted") is True and shape else values
    if kind == "values":
        exact = torch.float64 if dtype.is_floating_point else torch.int64
        return torch.tensor(recipe["values"], dtype=exact).reshape(shape)
    if kind == "probability":
        return torch.rand(shape, generator=generator, dtype=torch.float64) * 0.9 + 0.05
    if kind == "arange":
        last = shape[-1] if shape else 1
        return (torch.arange(last) + int(recipe["start"])).expand(shape or (1,)).reshape(shape)
    if kind == "constant":
        return torch.full(shape, recipe["value"], dtype=torch.float64 if dtype.is_floating_point else torch.int64)
    if kind == "mask":
        on = torch.rand(shape, generator=generator) < 0.7
        if shape and shape[-1] > 1:  # no row is all on or all off, whatever the mask means
            on[..., 0], on[..., -1] = True, False
        elif shape:
            on[...] = True
        return (on.double() - 1) * 1e4 if recipe["form"] == "additive" else on.long()
    raise ValueError(f"unknown kind {kind!r:.40}")
