"""Packed patches: encoders that read all patches of all images as one sequence, with a grid of sizes beside it.

Their forwards derive index tensors from the grid by `.tolist()` and loops; those are computed here once, by the
library's own export helpers, and passed in, so the traced graph is the tensor computation alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.exporters.utils import precompute_export_inputs

from extract.sources.transformers_inputs.facts import Facts

#: Patches a side (a multiple of every merge size and window in use).
GRID = 8


def patch_pixels(facts: Facts) -> int:
    """Length of one flattened patch."""
    config = facts.vision
    patch = facts.get("patch_size", "spatial_patch_size", config=config) or facts.get("patch_size", default=14)
    patch = patch[-1] if isinstance(patch, list | tuple) else patch
    frames = facts.get("temporal_patch_size", config=config) or 1
    channels = facts.get("in_channels", "in_chans", "num_channels", config=config) or 3
    return int(patch * patch * frames * channels)


def grid() -> torch.Tensor:
    """One image of `GRID` by `GRID` patches, as (1, 3): frames, rows, columns."""
    return torch.tensor([[1, GRID, GRID]])


def patches(facts: Facts, encoder: nn.Module) -> torch.Tensor:
    """Patches in the layout of the encoder's first layer: flat (n, pixels), or (n, channels, side, side)."""
    layers = [m for m in encoder.modules() if isinstance(m, nn.Conv2d | nn.Conv3d | nn.Linear)]
    first = next((m for m in layers if not isinstance(m, nn.Linear)), layers[0] if layers else None)
    count = GRID * GRID
    if isinstance(first, nn.Conv2d) and facts.kind in SQUARES:
        return torch.randn(count, first.in_channels, *first.kernel_size)
    if isinstance(first, nn.Linear):
        return torch.randn(count, first.in_features)
    return torch.randn(count, patch_pixels(facts))


def derived(encoder: nn.Module, **geometry: Any) -> dict[str, Any]:
    """Index tensors that `encoder` would compute from its geometry, by name."""
    given = dict(geometry)
    precompute_export_inputs(encoder, given)
    return {k: v for k, v in given.items() if v is not None}


def inputs(facts: Facts) -> dict[str, Any]:
    name = "hidden_states" if "hidden_states" in facts.required else "pixel_values"
    geometry: dict[str, Any] = {"grid_thw": grid()}
    if "merge_sizes" in facts.required:
        geometry["merge_sizes"] = torch.tensor([1])
    values = patches(facts, facts.model)
    if facts.kind in LEADING_AXIS:
        values = values[None]
    return {name: values, **derived(facts.model, **geometry)}


def sized(facts: Facts) -> dict[str, Any]:
    """Encoders that take one strip of patches (1, channels, side, patches * side) and each image's (rows, columns)."""
    patch = facts.get("patch_size", default=14)
    given = {"target_sizes": torch.tensor([[GRID, GRID]])}
    return {"pixel_values": torch.randn(1, 3, patch, patch * GRID * GRID), **derived(facts.model, **given)}


#: Families whose packed patches stay squares (n, channels, side, side).
SQUARES = {"paddleocr_vl", "paddleocr_vl_vision", "kimi_k25", "kimi_k25_vision"}
#: Encoders whose packed patches still have a batch axis in front.
LEADING_AXIS = {"paddleocr_vl_vision"}
