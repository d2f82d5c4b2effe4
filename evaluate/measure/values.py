"""Several distributions of the same inputs, so that what agrees on one does not pass for correct.

In go a record and a seed, out come its inputs under a named distribution. Weights, buffers, masks, indices and values
with stated bounds keep their recipe: only activations that a recipe calls `normal`, unbounded, are varied, so that no
input is one that a bare eager run could not have seen.
"""

from __future__ import annotations

from typing import Any

import torch

from warehouse.graph.inputs import draw, infer_recipes
from warehouse.graph.literals import loads
from warehouse.graph.record import GraphRecord

#: recipe: as the recipes say. reseeded: the same from another seed. small, large: activations times 1e-3 and 1e3.
#: integers: rounded to whole numbers after tripling. rows: the last dimension holds one value a row.
DISTRIBUTIONS = ("recipe", "reseeded", "small", "large", "integers", "rows")
_RESEED = 7_368_787


def with_recipes(record: GraphRecord) -> GraphRecord:
    """`record` with a recipe on every placeholder, inferred where one is missing."""
    return infer_recipes(record) if any(n.recipe is None for _, n in record.placeholders()) else record


def varied(record: GraphRecord) -> list[bool]:
    """Which placeholders, in call order, a distribution changes."""
    found = []
    for _, node in with_recipes(record).placeholders():
        recipe = loads(node.recipe or "null")
        plain = isinstance(recipe, dict) and recipe.get("kind") == "normal" and "low" not in recipe
        found.append(plain and node.role == "input")
    return found


def inputs(record: GraphRecord, distribution: str, seed: int, device: str = "cpu") -> list[Any]:
    """Values for the placeholders in call order. Raises RecordError as `warehouse.graph.inputs.draw`."""
    if distribution not in DISTRIBUTIONS:
        raise ValueError(f"no distribution is called {distribution!r}: {', '.join(DISTRIBUTIONS)}")
    values = draw(record, seed + _RESEED if distribution == "reseeded" else seed, device)
    return changed(values, varied(record), distribution)


def changed(values: list[Any], chosen: list[bool], distribution: str) -> list[Any]:
    """`values`, the chosen ones under a distribution; the others, and `recipe` and `reseeded`, as they are."""
    if distribution in ("recipe", "reseeded"):
        return values
    return [_change(v, distribution) if c else v for v, c in zip(values, chosen, strict=True)]


def _change(value: torch.Tensor, distribution: str) -> torch.Tensor:
    """A tensor of the same dtype, shape and strides."""
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    if value.numel() and any(t == 0 and s > 1 for s, t in zip(value.shape, value.stride(), strict=True)):
        return value  # expanded: elements share memory and cannot be written apart
    if distribution == "small":
        return made.copy_(value * 1e-3)
    if distribution == "large":
        return made.copy_(value * 1e3)
    if distribution == "integers":
        return made.copy_((value * 3).round())
    return made.copy_(value[..., :1].expand_as(value) if value.dim() else value)
