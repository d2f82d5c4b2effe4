"""Example inputs of the transformers source: one file for each kind of input, chosen here by signature.

In: a built model. Out: keyword arguments of its forward, as small real CPU tensors. `BY_CLASS` and `BY_TYPE` hold what
is peculiar to one class or model type; everything else follows from the arguments that the forward takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from extract.sources.transformers_inputs import audio, multimodal, packed, peculiar, series, text, video, vision
from extract.sources.transformers_inputs.facts import Facts

Builder = Callable[[Facts], dict[str, Any]]

#: (what the forward must take, builder), first match wins. `!` means required, `-` means not taken.
KINDS: tuple[tuple[tuple[str, ...], Builder], ...] = (
    (("past_values",), series.inputs),
    (("!grid_thw",), packed.inputs),
    (("target_sizes", "-input_ids"), packed.sized),
    (("flattened_patches",), vision.flattened),
    (("input_ids", "pixel_values"), multimodal.inputs),
    (("input_ids", "pixel_values_videos"), multimodal.inputs),
    (("input_ids", "input_features"), multimodal.inputs),
    (("input_ids", "input_values"), multimodal.inputs),
    (("input_features",), audio.features),
    (("input_values",), audio.wave),
    (("pixel_values_videos",), video.inputs),
    (("pixel_values",), vision.inputs),
    (("input_ids",), text.inputs),
)


def example_inputs(model: nn.Module) -> dict[str, Any]:
    """Keyword arguments to call `model` with. LookupError where none are known."""
    facts = Facts(model)
    builder = peculiar.BY_CLASS.get(facts.cls) or peculiar.BY_TYPE.get(facts.kind) or _by_signature(facts)
    return {name: value for name, value in builder(facts).items() if value is not None}


def _by_signature(facts: Facts) -> Builder:
    def holds(need: str) -> bool:
        if need.startswith("-"):
            return need[1:] not in facts.accepts
        return need[1:] in facts.required if need.startswith("!") else need in facts.accepts

    for needs, builder in KINDS:
        if all(holds(need) for need in needs):
            return builder
    raise LookupError(f"no example inputs are known for {facts.cls}({', '.join(sorted(facts.accepts))})")
