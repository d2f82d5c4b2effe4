"""Images under their family's own layout: tiles, folded cells, flattened patches, with the text around them."""

from __future__ import annotations

from typing import Any

import torch

from extract.sources.transformers_inputs.facts import LENGTH, Facts
from extract.sources.transformers_inputs.vision import pixels


def page_patches(facts: Facts) -> dict[str, Any]:
    """Kosmos-2.5: text with image placeholders, and patches that begin with their row and column from 1."""
    tokens = facts.get("latent_query_num", default=64)
    ids = facts.around(1, tokens)
    place = torch.stack([torch.arange(64) // 8 + 1, torch.arange(64) % 8 + 1], dim=-1).float()
    patch = facts.get("patch_size", default=16)
    mask = torch.zeros_like(ids)
    mask[:, 2 : 2 + tokens] = 1
    return {
        "input_ids": ids,
        "flattened_patches": torch.cat([place, torch.rand(64, patch * patch * 3)], dim=-1)[None],
        "image_embeds_position_mask": mask,
        "attention_mask": torch.ones_like(ids),
    }


def tiled(facts: Facts) -> dict[str, Any]:
    """Mllama: text that looks across at one image of up to four tiles."""
    tiles = facts.get("max_num_tiles", default=4)
    given: dict[str, Any] = {
        "pixel_values": pixels(facts, 1, 1, tiles),
        "aspect_ratio_ids": torch.ones(1, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(1, 1, tiles, dtype=torch.long),
    }
    if "input_ids" in facts.accepts:
        given["input_ids"] = facts.ids()
        given["attention_mask"] = torch.ones(1, LENGTH, dtype=torch.long)
        given["cross_attention_mask"] = torch.ones(1, LENGTH, 1, tiles, dtype=torch.long)
    return given


def cells(facts: Facts) -> dict[str, Any]:
    """Inkling 2: an image as squares of folded patches (squares, side, side, channels), and their number a side."""
    vision = facts.vision
    side = vision.patch_size * vision.spatial_merge_size
    count = 4
    given: dict[str, Any] = {
        "pixel_values": torch.rand(count * count, side, side, 3),
        "image_grid_thw": torch.tensor([[1, count, count]]),
    }
    if "input_ids" in facts.accepts:
        given["input_ids"] = facts.around(facts.config.image_token_id, count * count)
    return given


def flat_patches(facts: Facts) -> dict[str, Any]:
    """NeoMME: flattened patches (patches, channels * side * side), one placeholder each."""
    return {
        "input_ids": facts.around(facts.config.image_token_id, 16),
        "pixel_values": torch.rand(16, facts.config.patch_dim),
    }


def tiles_of_page(facts: Facts) -> dict[str, Any]:
    """Granite Docling: tiles of a page (1, tiles, channels, side, side), which are real, and placeholders for them."""
    inner: Any = facts.model if hasattr(facts.model, "image_seq_len") else facts.model.model
    return {
        "input_ids": facts.around(facts.config.image_token_id, int(inner.image_seq_len)),
        "pixel_values": pixels(facts, 1, 1),
        "pixel_attention_mask": torch.ones(1, 1, dtype=torch.bool),
    }


def placed_image(facts: Facts) -> dict[str, Any]:
    """Kosmos-2: text, one image, and the map of the places that its queries take."""
    count = facts.get("latent_query_num", default=64)
    ids = facts.around(1, count)
    places = torch.zeros_like(ids)
    places[:, 2 : 2 + count] = 1
    return {"input_ids": ids, "pixel_values": pixels(facts, 1), "image_embeds_position_mask": places}


def robot(facts: Facts) -> dict[str, Any]:
    """PI0: an instruction, one camera image, and the robot's state (embedded actions for the base model)."""
    config = facts.config
    vlm = config.vlm_config
    count = (vlm.vision_config.image_size // vlm.vision_config.patch_size) ** 2
    ids = torch.cat([torch.full((1, count), vlm.image_token_index), facts.ids()], dim=1)
    given: dict[str, Any] = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.rand(1, 1, 3, vlm.vision_config.image_size, vlm.vision_config.image_size),
        "pixel_attention_mask": torch.ones(1, 1, dtype=torch.bool),
    }
    if "action_embeds" in facts.required:
        given["action_embeds"] = torch.randn(1, config.chunk_size + 1, config.dit_config.hidden_size)
    else:
        given["state"] = torch.randn(1, config.max_state_dim)
        given["noise"] = torch.randn(1, config.chunk_size, config.max_action_dim)
        given["timestep"] = torch.rand(1)
    return given


def ragged_patches(facts: Facts) -> dict[str, Any]:
    """SigLIP 2: flattened patches (1, patches, channels * side * side), a mask, and each image's (rows, columns)."""
    side = facts.get("patch_size", config=facts.vision)
    given: dict[str, Any] = {
        "pixel_values": torch.rand(1, 256, 3 * side * side),
        "pixel_attention_mask": torch.ones(1, 256, dtype=torch.long),
        "spatial_shapes": torch.tensor([[16, 16]]),
    }
    if "input_ids" in facts.accepts:
        given["input_ids"] = facts.ids()
    return given


def ragged_patches_in_text(facts: Facts) -> dict[str, Any]:
    """LFM2-VL: SigLIP 2 patches beside a text with one placeholder for each folded square of patches."""
    count = (16 // facts.get("downsample_factor", default=2)) ** 2
    return {**ragged_patches(facts), "input_ids": facts.around(facts.config.image_token_id, count)}


def placed_patches(facts: Facts) -> dict[str, Any]:
    """Gemma 4's vision tower: flattened patches and the (column, row) of each; twelve a side pool evenly by three."""
    side = facts.config.patch_size
    place = torch.stack([torch.arange(144) % 12, torch.arange(144) // 12], dim=-1)
    return {"pixel_values": torch.rand(1, 144, 3 * side * side), "pixel_position_ids": place[None]}


def asked_clip(facts: Facts) -> dict[str, Any]:
    """InstructBLIP-Video: a clip of four frames, the question for the Q-Former, and a placeholder for each query."""
    count = facts.config.num_query_tokens * 4
    return {
        "input_ids": facts.around(facts.config.video_token_index, count),
        "qformer_input_ids": torch.randint(5, 400, (1, 8)),
        "qformer_attention_mask": torch.ones(1, 8, dtype=torch.long),
        "pixel_values": pixels(facts, 1, 4),
    }


def pictured(facts: Facts) -> dict[str, Any]:
    """IDEFICS: images (1, images, channels, side, side), and which of them each token sees."""
    return {
        "input_ids": facts.ids(),
        "attention_mask": torch.ones(1, LENGTH, dtype=torch.long),
        "pixel_values": pixels(facts, 1, 1),
        "image_attention_mask": torch.ones(1, LENGTH, 1, dtype=torch.long),
    }


def linear_patches(facts: Facts) -> dict[str, Any]:
    """Fuyu: flattened patches (1, patches, channels * side * side), one placeholder each."""
    side, token = facts.config.patch_size, facts.config.image_token_id
    return {"input_ids": facts.around(token, 16), "pixel_values": torch.rand(1, 16, 3 * side * side)}


def seen_and_heard(facts: Facts) -> dict[str, Any]:
    """Perception Encoder: a clip (1, frames, channels, side, side) and a wave (1, 1, samples)."""
    return {"pixel_values_videos": pixels(facts, 1, 4), "input_values": torch.randn(1, 1, 15_360)}
