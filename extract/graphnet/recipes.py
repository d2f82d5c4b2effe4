"""From what a sample says of its arguments to value recipes (`warehouse.graph.inputs`).

A sample prints mean and standard deviation to 3 decimals, the extremes of some tensors, and all values of small ones.
What an argument is used for still counts: an index stays inside what it indexes, a variance stays positive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from extract.graphnet.metas import Meta
from extract.graphnet.problem import SampleError, shown
from warehouse.graph.inputs import KINDS, infer_recipes
from warehouse.graph.literals import DTYPES, dumps, loads
from warehouse.graph.record import GraphRecord, RecordError
from warehouse.graphnet.layout import RECIPE, WEIGHTS

#: Values that a recipe lists one by one.
MAX_VALUES = 4096
MAX_TEXT = 1 << 20


def with_recipes(record: GraphRecord, metas: Mapping[int, Meta]) -> GraphRecord:
    """`record` with a recipe on every placeholder; `metas` by slot."""
    counted = {slot: seen for slot, meta in metas.items() if (seen := _counted(meta)) is not None}
    record = infer_recipes(record, counted)
    rows = list(record.nodes)
    for row, node in record.placeholders():
        meta = metas.get(node.slot or 0)
        inferred = loads(node.recipe or "null")
        if meta is None or inferred is None:
            continue
        if (stated := _stated(meta)) is not None:
            rows[row] = replace(node, recipe=stated)
            continue
        if inferred["kind"] == "symbol":
            recipe = {"kind": "symbol", "value": int(meta.data[0]) if meta.data else inferred["value"]}
        elif DTYPES[meta.dtype].is_floating_point and node.dtype == meta.dtype:
            recipe = _measured(inferred, meta)
        else:
            continue
        rows[row] = replace(node, recipe=dumps(recipe))
    return record.with_nodes(tuple(rows))


def _stated(meta: Meta) -> str | None:
    """The recipe that our own export states; None without one. It is data: `draw` refuses what is no recipe."""
    told = meta.extra.get(RECIPE)
    if told is None:
        return None
    try:
        recipe = loads(told) if isinstance(told, str) and len(told) <= MAX_TEXT else None
    except RecordError:
        recipe = None
    if not isinstance(recipe, dict) or recipe.get("kind") not in KINDS:
        raise SampleError("meta_invalid", f"{shown(meta.name)}: recipe {shown(told)}", f"{WEIGHTS}:{meta.line}")
    return dumps(recipe)


def _counted(meta: Meta) -> dict[str, Any] | None:
    """Observations of an integer or boolean tensor, as `infer_recipes` takes them."""
    if DTYPES[meta.dtype].is_floating_point or DTYPES[meta.dtype].is_complex:
        return None
    if meta.data:
        values = [int(v) for v in meta.data]
        start = values[0]
        rising = len(values) > 1 and meta.shape[-1] == len(values)
        seen: dict[str, Any] = {"min": min(values), "max": max(values)}
        if rising and values == list(range(start, start + len(values))):
            seen["is_arange"] = True
        if len(values) <= MAX_VALUES:
            seen["values"] = values
        return seen
    if meta.low is None or meta.high is None or not math.isfinite(meta.low + meta.high):
        return None
    return {"min": int(meta.low), "max": int(meta.high)}


def _measured(inferred: dict[str, Any], meta: Meta) -> dict[str, Any]:
    """The recipe of a float tensor: its own numbers, unless what it is used for asks for more than they say."""
    if meta.data and len(meta.data) <= MAX_VALUES and all(math.isfinite(v) for v in meta.data):
        values = [float(v) for v in meta.data]
        if len(set(values)) == 1:
            return {"kind": "constant", "value": values[0]}
        return {"kind": "values", "values": values}
    mean, std = meta.mean, meta.std
    if mean is None or not math.isfinite(mean) or inferred["kind"] in ("probability", "mask"):
        return inferred
    spread = std if std is not None and math.isfinite(std) and std >= 0 else 0.0
    if inferred["kind"] == "positive":  # "0.000" may stand for any small number, and zero would divide by zero
        return {"kind": "positive", "mean": mean, "std": spread} if mean > 0 else inferred
    if spread == 0.0:
        return {"kind": "constant", "value": mean}
    recipe = {"kind": "normal", "mean": mean, "std": spread}
    if meta.low is not None and meta.high is not None and math.isfinite(meta.low + meta.high) and meta.low <= meta.high:
        recipe |= {"low": meta.low, "high": meta.high}
    return recipe
