"""Text with images, clips or sound: placeholders in the token ids, one for each embedding that replaces it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from extract.sources.transformers_inputs import audio, packed, text, video, vision
from extract.sources.transformers_inputs.facts import Facts

IMAGE_TOKENS = ("image_token_id", "image_token_index", "image_pad_token_id", "media_placeholder_token_id")
AUDIO_TOKENS = ("audio_token_id", "audio_token_index")


def inputs(facts: Facts) -> dict[str, Any]:
    """Token ids around one image, or one sound where the model reads no images."""
    if all(facts.get(name, config=facts.config) is None for name in ("vision_config", "audio_config")) and any(
        hasattr(facts.config, name) for name in ("vision_config", "audio_config")
    ):
        return text.inputs(facts)  # the default configuration leaves the other senses out
    if "pixel_values" in facts.accepts and "image_grid_thw" in facts.accepts:
        return _packed_image(facts)
    if "pixel_values" in facts.accepts:
        return _image(facts)
    if "pixel_values_videos" in facts.accepts:
        return {**text.inputs(facts), **video.inputs(facts)}
    return _sound(facts)


def with_placeholders(facts: Facts, token: int | None, count: int, kind: int = 1) -> dict[str, Any]:
    """`input_ids` with `count` copies of `token` after two words, and the map of token kinds where it is taken."""
    if token is None or count == 0:
        ids = facts.ids()
        return {"input_ids": ids}
    ids = facts.around(token, count)
    given: dict[str, Any] = {"input_ids": ids}
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in facts.accepts and (name == "mm_token_type_ids" or facts.kind in TYPED):
            given[name] = (ids == token).long() * kind
    return given


def _image(facts: Facts) -> dict[str, Any]:
    token = facts.get(*IMAGE_TOKENS)
    pixels = vision.pixels(facts, 1)
    if facts.kind in TEXT_ALONE:
        return text.inputs(facts)
    if token is None:  # two towers side by side: no placeholders
        given = text.inputs(facts)
        given["pixel_values"] = pixels
        return given
    extra: dict[str, Any] = {}
    side = tuple(pixels.shape[-2:])
    tiles = getattr(sys.modules[type(facts.model).__module__], "image_size_to_num_patches", None)
    if facts.kind in NESTED:
        pixels = pixels[None]
    elif tiles is not None:  # a picture is cut into tiles, by its size, beside one view of the whole
        count = tiles(image_size=list(side), grid_pinpoints=facts.config.image_grid_pinpoints, patch_size=side[0])
        pixels = vision.pixels(facts, 1, int(count))
    if "image_sizes" in facts.accepts and facts.kind != "llava":  # llava passes it to encoders that take one size only
        extra["image_sizes"] = [side]  # plain numbers: as a tensor they would be values that a fake does not have
    for name, make in IMAGE_COMPANIONS.items():
        if name in facts.accepts:
            extra[name] = make(facts, pixels)
    fixed = EMBEDDINGS.get(facts.kind)
    try:
        count = fixed(facts) if fixed else facts.features("get_image_features", pixel_values=pixels, **extra)
    except (DataDependentOutputException, DynamicOutputShapeException):
        return text.inputs(facts)  # the number of embeddings is itself a value: the language path alone
    return {**with_placeholders(facts, token, count), "pixel_values": pixels, **extra}


def _shuffled(facts: Facts) -> int:
    """Embeddings after `scale_factor` squared patches are folded into one."""
    side = vision.image_size(facts)[0] // facts.get("patch_size", config=facts.vision)
    return int((side // facts.get("scale_factor", "pixel_shuffle_factor", default=1)) ** 2)


def _resampled(facts: Facts) -> int:
    return int(facts.get("resampler_n_latents", default=64))


#: Families whose image path holds `nonzero`, so that fake tensors cannot count embeddings.
EMBEDDINGS: dict[str, Callable[[Facts], int]] = {
    "idefics2": _resampled,
    "instructblip": lambda facts: int(facts.config.num_query_tokens),
    "idefics3": _shuffled,
    "smolvlm": _shuffled,
    "modernvbert": _shuffled,
    "colmodernvbert": _shuffled,
    "ultravbert": _shuffled,
}
#: argument of the image path -> how it is made from the pixels.
IMAGE_COMPANIONS: dict[str, Callable[[Facts, torch.Tensor], Any]] = {
    "high_res_pixel_values": lambda facts, pixels: torch.rand(1, 3, 1024, 1024),
    "pixel_attention_mask": lambda facts, pixels: (
        torch.ones(*pixels.shape[:2], *pixels.shape[-2:], dtype=torch.long) if pixels.dim() == 5 else None
    ),
    "qformer_input_ids": lambda facts, pixels: torch.randint(5, 400, (1, 8)),
}


def _packed_image(facts: Facts) -> dict[str, Any]:
    """One image as packed patches, with every index tensor that the forward would read off the grid by value."""
    if facts.kind in VALUE_BOUND:
        return text.inputs(facts)
    encoder = _encoder(facts)
    token = facts.get(*IMAGE_TOKENS)
    grid = packed.grid()
    merge = facts.get("spatial_merge_size", "merge_size", config=facts.vision) or facts.get(
        "spatial_merge_size", default=1
    )
    merge = merge[0] if isinstance(merge, list | tuple) else merge
    given = with_placeholders(facts, token, packed.GRID * packed.GRID // (merge * merge))
    given |= {"pixel_values": packed.patches(facts, encoder), "image_grid_thw": grid}
    derived = packed.derived(encoder, grid_thw=grid)
    given |= {f"image_{k}": v for k, v in derived.items() if k != "grid_thw"}
    owner: Any = next((m for m in facts.model.modules() if hasattr(m, "get_rope_index")), None)
    if owner is not None and facts.kind in PLAIN_POSITIONS:
        given["position_ids"] = torch.arange(given["input_ids"].shape[1]).expand(3, 1, -1).clone()
    elif owner is not None:
        rope = {k: given[k] for k in ("input_ids", "mm_token_type_ids", "image_grid_thw") if k in given}
        given["position_ids"] = owner.get_rope_index(**rope)[0]
    return given


#: Families whose image path takes geometry as values, or whose placeholders follow rules of their own.
TEXT_ALONE = {"apertus1p5", "molmo2", "ovis2"}
#: Families whose other senses loop over values of a grid or mask: traced with text alone.
VALUE_BOUND = {"qwen3_asr", "muse_spark", "muse_glimmer", "hy_v4_vl", "hunyuan_vl", "ernie4_5_vl_moe", "video_llama_3"}
#: Families whose default configuration lacks the tokens that their own position rule looks for.
PLAIN_POSITIONS = {"qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"}


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
    if facts.kind in VALUE_BOUND:
        return text.inputs(facts)
    if token is None:
        return {**text.inputs(facts), name: given[name]}
    frames = audio.length(facts, given[name])
    for mask in ("input_features_mask", "feature_attention_mask"):
        if facts.kind.startswith("granite_speech"):  # its mask is over embeddings, and only needed for padding
            given.pop(mask, None)
        elif mask in facts.accepts:
            given[mask] = torch.ones(1, frames, dtype=torch.long)
    return {**with_placeholders(facts, token, _sound_count(facts, given, frames), kind=3), **given}


def _sound_count(facts: Facts, given: dict[str, Any], frames: int) -> int:
    """Embeddings of a sound; by the encoder's own length rule where a mask decides how many are kept."""
    try:
        return facts.features("get_audio_features", **given)
    except (DataDependentOutputException, DynamicOutputShapeException, LookupError, TypeError):
        for module in facts.model.modules():
            rule = getattr(module, "_get_feat_extract_output_lengths", None)
            if rule is not None:
                found = rule(torch.tensor([frames]))
                return int(found[-1] if isinstance(found, tuple) else found)
        return frames  # a full mask over unreduced frames


#: Families whose pixel values have an extra axis for the images of one sample.
NESTED = {"idefics2", "idefics3", "smolvlm", "modernvbert", "colmodernvbert", "ultravbert", "perception_lm"}
#: Families that read `token_type_ids` as a map of image tokens.
TYPED = {"gemma3", "paligemma", "colpali", "shieldgemma2"}
