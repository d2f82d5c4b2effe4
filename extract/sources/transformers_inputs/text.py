"""Text inputs: token ids, and what travels with them (decoder ids, boxes, languages, entities)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from extract.sources.transformers_inputs.facts import LENGTH, Facts


def inputs(facts: Facts) -> dict[str, Any]:
    """`input_ids` (1, `LENGTH`) and every companion that the forward requires or cannot do without."""
    if facts.cls.endswith("ForMultipleChoice"):
        return {"input_ids": facts.ids(batch=2)[None]}  # (batch, choices, length)
    given = {"input_ids": facts.ids()}
    for name, make in COMPANIONS.items():
        if name in facts.accepts:
            given[name] = make(facts)
    return given


def decoder_ids(facts: Facts) -> torch.Tensor | None:
    """Decoder token ids (1, 8); some decoders have several code books, (1, books, 8) or (books, 8)."""
    if facts.cls.endswith(("ForSequenceClassification", "ForQuestionAnswering")):
        return None  # these shift their encoder ids themselves
    if facts.cls.endswith(("ForRNNT", "ForTDT")):
        return torch.ones(1, 4, dtype=torch.long)  # the prediction network of a transducer
    if not facts.get("is_encoder_decoder", default=False) and "decoder_input_ids" not in facts.required:
        decoder = facts.part("decoder", "decoder_config")
        if decoder is None and facts.part("encoder") is None:
            return None
    size = facts.get("vocab_size", config=facts.part("decoder", "decoder_config", "text_config")) or facts.vocabulary
    return torch.randint(3, min(int(size), 400), (1, 8))


def boxes(facts: Facts, length: int = LENGTH) -> torch.Tensor:
    """Word boxes (1, length, 4) on a 0-1000 grid, lower right below upper left."""
    corner = torch.randint(0, 400, (1, length, 2))
    return torch.cat([corner, corner + torch.randint(1, 500, (1, length, 2))], dim=-1)


#: argument -> how it is made; only what a forward would otherwise refuse or leave a branch out for.
COMPANIONS: dict[str, Callable[[Facts], Any]] = {
    "decoder_input_ids": decoder_ids,
    "bbox": boxes,
    "lang_ids": lambda facts: torch.zeros(1, dtype=torch.long),
}
