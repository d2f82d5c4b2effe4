"""Image inputs: (1, channels, height, width) in the size that the configuration asks for."""

from __future__ import annotations

import re
from typing import Any

import torch

from extract.sources.transformers_inputs.facts import Facts
from extract.sources.transformers_inputs.text import decoder_ids

#: Pixels a side where the configuration names no size: divisible by every usual stride.
SIDE = 224


def image_size(facts: Facts) -> tuple[int, int]:
    """(height, width) in pixels."""
    for part in (facts.vision, facts.config, facts.part("backbone_config"), facts.part("perceiver_config")):
        if part is None:
            continue
        for name in ("image_size", "img_size", "max_img_size", "pretrain_image_size", "input_image_size", "input_size"):
            value = getattr(part, name, None)
            if isinstance(value, dict):
                value = [value.get("height", SIDE), value.get("width", SIDE)]
            if isinstance(value, list | tuple) and len(value) >= 2 and isinstance(value[-1], int):
                return int(value[-2]), int(value[-1])
            if isinstance(value, list | tuple) and len(value) == 1:
                value = value[0]
            if isinstance(value, int) and value > 0:
                return value, value
        sizes = getattr(part, "backbone_feature_sizes", None)
        if sizes:  # the finest map, at a quarter of the side
            return 4 * int(sizes[0][0]), 4 * int(sizes[0][1])
        made_for = re.search(r"_(\d{3})$", getattr(part, "architecture", None) or "")  # a timm name ends in its size
        if made_for:
            return int(made_for[1]), int(made_for[1])
    return SIDE, SIDE


def channels(facts: Facts) -> int:
    for part in (facts.vision, facts.config, facts.part("backbone_config")):
        if part is None:
            continue
        for name in ("num_channels", "in_chans", "in_channels", "image_channels"):
            value = getattr(part, name, None)
            if isinstance(value, int):
                return value
    return 3


def pixels(facts: Facts, *lead: int) -> torch.Tensor:
    """Random pixels (*lead, channels, height, width)."""
    return torch.rand(*lead, channels(facts), *image_size(facts))


def inputs(facts: Facts) -> dict[str, Any]:
    """`pixel_values`; frames are added for models that read clips under that name."""
    frames = facts.get("num_frames", config=facts.config)
    if isinstance(frames, int) and frames > 1 and facts.kind in CLIPS:
        return {"pixel_values": pixels(facts, 1, frames)}
    given: dict[str, Any] = {"pixel_values": pixels(facts, 1)}
    if "decoder_input_ids" in facts.accepts:
        given["decoder_input_ids"] = decoder_ids(facts)
    return given


def flattened(facts: Facts) -> dict[str, Any]:
    """Pix2Struct: patches (1, patches, 2 + patch pixels), the first two being row and column from 1."""
    patch = facts.get("patch_size", default=16)
    size = patch * patch * 3
    place = torch.stack([torch.arange(64) // 8 + 1, torch.arange(64) % 8 + 1], dim=-1).float()
    given = {"flattened_patches": torch.cat([place, torch.rand(64, size)], dim=-1)[None]}
    if "decoder_input_ids" in facts.accepts:
        given["decoder_input_ids"] = torch.randint(3, 100, (1, 8))
    return given


#: Model types whose `pixel_values` are clips (1, frames, channels, height, width).
CLIPS = {"videomae", "vivit", "timesformer", "vjepa2", "video_prism"}
