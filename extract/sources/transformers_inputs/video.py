"""Clips: (1, frames, channels, height, width)."""

from __future__ import annotations

from typing import Any

from extract.sources.transformers_inputs.facts import Facts
from extract.sources.transformers_inputs.vision import pixels


def frames(facts: Facts) -> int:
    """Frames of a clip, in whole tubelets."""
    count = facts.get("num_frames", "frames_per_clip", "num_video_frames", default=8)
    return min(int(count), 16)


def inputs(facts: Facts) -> dict[str, Any]:
    return {"pixel_values_videos": pixels(facts, 1, frames(facts))}
