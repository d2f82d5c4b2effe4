"""Text with images, clips or sound: placeholders in the token ids, one for each embedding that replaces it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from extract.sources.transformers_inputs import audio, packed, text, vision
from extract.sources.transformers_inputs.facts import LENGTH, Facts

IMAGE_TOKENS = ("image_token_id", "image_token_index", "image_pad_token_id", "media_placeholder_token_id")
AUDIO_TOKENS = ("audio_token_id", "audio_token_index")


def inputs(facts: Facts) -> dict[str, Any]:
    """Token ids around one image, or one sound where the model reads no images."""
    if "pixel_values" in facts.accepts and "image_grid_thw" in facts.accepts:
        return _packed_image(facts)
    if "pixel_values" in facts.accepts:
        return _image(facts)
    if "pixel_values_videos" in facts.accepts:
        from extract.sources.transformers_inputs import video

        return {**text.inputs(facts), **video.inputs(facts)}
    return _sound(facts)


def with_placeholders(facts: Facts, token: int | None, count: int, kind: int = 1) -> dict[str, Any]:
    """`input_ids` with `count` copies of `token` after two words, and the map of token kinds where it is taken."""
    if token is None or count == 0:
        ids = facts.ids()
        return {"input_ids": ids}
    words = facts.ids(LENGTH)
    ids = torch.cat([words[:, :2], torch.full((1, count), token), words[:, 2:]], dim=1)
    given: dict[str, Any] = {"input_ids": ids}
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in facts.accepts and (name == "mm_token_type_ids" or facts.kind in TYPED):
            given[name] = (ids == token).long() * kind
    return given


def _image(facts: Facts) -> dict[str, Any]:
    token = facts.get(*IMAGE_TOKENS)
    pixels = vision.pixels(facts, 1)
    if token is None:  # two towers side by side: no placeholders
        given = text.inputs(facts)
        given["pixel_values"] = pixels
        return given
    extra: dict[str, Any] = {}
    if facts.kind in NESTED:
        pixels = pixels[None]
    if "image_sizes" in facts.accepts:
        extra["image_sizes"] = torch.tensor([list(pixels.shape[-2:])])
    count = _count(facts, "get_image_features", pixel_values=pixels, **extra)
    return {**with_placeholders(facts, token, count), "pixel_values": pixels, **extra}


def _count(facts: Facts, method: str, **kwargs: Any) -> int:
    return facts.features(method, **kwargs)


def _packed_image(facts: Facts) -> dict[str, Any]:
    encoder = _encoder(facts)
    token = facts.get(*IMAGE_TOKENS)
    grid = packed.grid()
    merge = facts.get("spatial_merge_size", "merge_size", config=facts.vision) or facts.get("spatial_merge_size", default=1)
    merge = merge[0] if isinstance(merge, list | tuple) else merge
    given = with_placeholders(facts, token, packed.GRID * packed.GRID // (merge * merge))
    given |= {"pixel_values": packed.patches(facts, encoder), "image_grid_thw": grid}
    derived = packed.derived(encoder, grid_thw=grid)
    given |= {f"image_{k}": v for k, v in derived.items() if k != "grid_thw"}
    places = dict(given)
    owner = next((m for m in (facts.model, *facts.model.children()) if hasattr(m, "get_rope_index")), None)
    if owner is not None:
        rope = {k: places[k] for k in ("input_ids", "mm_token_type_ids", "image_grid_thw") if k in places}
        given["position_ids"] = owner.get_rope_index(**rope)[0]
    return given


def _encoder(facts: Facts) -> nn.Module:
    names = ("visual", "vision_tower", "vision_model", "vision_encoder", "vit")
    for _, module in facts.model.named_modules():
        for name in names:
            found = getattr(module, name, None)
            if isinstance(found, nn.Module):
                return found
    raise LookupError(f"no vision encoder found in {facts.cls}")


def _sound(facts: Facts) -> dict[str, Any]:
    name = "input_features" if "input_features" in facts.accepts else "input_values"
    given = audio.features(facts) if name == "input_features" else audio.wave(facts)
    token = facts.get(*AUDIO_TOKENS)
    if token is None:
        return {**text.inputs(facts), name: given[name]}
    frames = given[name].shape[-1] if facts.audio.model_type in audio.CHANNELS_FIRST else given[name].shape[1]
    for mask in ("input_features_mask", "feature_attention_mask"):
        if mask in facts.accepts:
            given[mask] = torch.ones(1, frames, dtype=torch.long)
    count = facts.features("get_audio_features", **given)
    return {**with_placeholders(facts, token, count, kind=3), **given}


#: Families whose pixel values have an extra axis for the images of one sample.
NESTED = {"idefics2", "idefics3", "smolvlm", "granite_docling", "modernvbert", "colmodernvbert", "llava_next", "llava_onevision"}
#: Families that read `token_type_ids` as a map of image tokens.
TYPED = {"gemma3", "paligemma", "colpali", "shieldgemma2"}
