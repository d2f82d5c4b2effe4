"""Images with prompts: points, example images, pairs to match, words to look for."""

from __future__ import annotations

from typing import Any

import torch

from extract.sources.transformers_inputs.facts import Facts
from extract.sources.transformers_inputs.vision import image_size, pixels


def points(facts: Facts) -> dict[str, Any]:
    """One foreground point in the middle: points (1, prompts, points, 2), labels (1, prompts, points)."""
    height, width = image_size(facts)
    middle = torch.tensor([[[[width / 2.0, height / 2.0]]]])
    return {
        "pixel_values": pixels(facts, 1),
        "input_points": middle,
        "input_labels": torch.ones(1, 1, 1, dtype=torch.long),
    }


def words(facts: Facts) -> dict[str, Any]:
    """SAM 3: an image and a phrase."""
    return {
        "pixel_values": pixels(facts, 1),
        "input_ids": facts.ids(8),
        "attention_mask": torch.ones(1, 8, dtype=torch.long),
    }


def pair(facts: Facts) -> dict[str, Any]:
    """Two images to match: (1, 2, channels, height, width)."""
    return {"pixel_values": torch.rand(1, 2, 3, 480, 640)}


def example(facts: Facts) -> dict[str, Any]:
    """SegGPT: an image, an example image and the example's mask; two stand one above the other in the model's size."""
    height, width = image_size(facts)
    names = ("pixel_values", "prompt_pixel_values", "prompt_masks")
    return {name: torch.rand(1, 3, height // 2, width) for name in names}


def classes(facts: Facts) -> dict[str, Any]:
    """OmDet-Turbo: an image, the class names of each image, and the task as text."""
    mask = torch.ones(2, 8, dtype=torch.long)
    return {
        "pixel_values": pixels(facts, 1),
        "classes_input_ids": facts.ids(8, batch=2),
        "classes_attention_mask": mask,
        "tasks_input_ids": facts.ids(8),
        "tasks_attention_mask": mask[:1],
        "classes_structure": torch.tensor([2]),
    }


def task(facts: Facts) -> dict[str, Any]:
    """OneFormer: an image and the tokenised task."""
    length = facts.get("task_seq_len", default=77)
    return {"pixel_values": pixels(facts, 1), "task_inputs": torch.randint(1, 400, (1, length))}


def queries(facts: Facts) -> dict[str, Any]:
    """OWL: an image and short queries, one row for each; the text tower holds 16 tokens."""
    length = facts.get("max_position_embeddings", config=facts.text) or 16
    return {"input_ids": facts.ids(min(length, 16)), "pixel_values": pixels(facts, 1)}


def grounding(facts: Facts) -> dict[str, Any]:
    """Grounding DINO: an image and a caption."""
    return {"pixel_values": pixels(facts, 1), "input_ids": facts.ids(8)}
