"""What is peculiar to one class or one model type: exact inputs where the signature alone does not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from extract.sources.transformers_inputs import layouts, prompting, speech, structured, vision
from extract.sources.transformers_inputs.facts import Facts

Builder = Callable[[Facts], dict[str, Any]]


def _image(height: int, width: int) -> Builder:
    return lambda facts: {"pixel_values": torch.rand(1, 3, height, width)}


def _clip(facts: Facts) -> dict[str, Any]:
    """Text and a clip (1, frames, channels, height, width)."""
    frames = int(facts.get("num_frames", default=8))
    given = {"pixel_values": vision.pixels(facts, 1, frames)}
    if "input_ids" in facts.accepts:
        given["input_ids"] = facts.ids()
        given["attention_mask"] = torch.ones_like(given["input_ids"])
    return given


def _separated(facts: Facts) -> dict[str, Any]:
    """Longformer reads where the question ends off the three separators around question and text."""
    ids = facts.ids()
    ids[:, [5, 6, -1]] = facts.config.sep_token_id
    return {"input_ids": ids}


#: class name -> builder; looked up before the model type.
BY_CLASS: dict[str, Builder] = {
    "SpeechT5Model": speech.hidden_to_hidden,
    "SpeechT5ForTextToSpeech": speech.text_to_frames,
    "SpeechT5ForSpeechToText": speech.wave_to_text,
    "MusicgenForCausalLM": speech.flat_books,
    "MusicgenModel": speech.flat_books,
    "MusicgenMelodyForCausalLM": speech.flat_books,
    "MusicgenMelodyModel": speech.flat_books,
    "MusicgenForConditionalGeneration": speech.prompted_books,
    "MusicgenMelodyForConditionalGeneration": speech.prompted_books,
    "JevForDecision": structured.decision,
    "LongformerForQuestionAnswering": _separated,
}
#: model type -> builder for every class of the type.
BY_TYPE: dict[str, Builder] = {
    "blip_2_qformer": structured.querying,
    "bros": structured.document,
    "decision_transformer": structured.trajectory,
    "depth_pro": structured.large_side,
    "dia": speech.code_books,
    "efficientloftr": prompting.pair,
    "evolla": structured.protein,
    "fuyu": layouts.linear_patches,
    "gemma4_vision": layouts.placed_patches,
    "granite_docling": layouts.tiles_of_page,
    "grounding-dino": prompting.grounding,
    "idefics": layouts.pictured,
    "inkling2": layouts.cells,
    "inkling2_loop": layouts.cells,
    "inkling2_vision": layouts.cells,
    "instructblipvideo": layouts.asked_clip,
    "kosmos-2": layouts.placed_image,
    "kosmos-2.5": layouts.page_patches,
    "kyutai_speech_to_text": speech.text_and_books,
    "lfm2_vl": layouts.ragged_patches_in_text,
    "layoutlm": structured.document,
    "layoutlmv3": structured.document,
    "lightglue": prompting.pair,
    "luke": structured.entities,
    "lxmert": structured.regions,
    "markuplm": structured.marked_up,
    "mllama": layouts.tiled,
    "mimi_decoder": speech.latents,
    "mluke": structured.entities,
    "mm-grounding-dino": prompting.grounding,
    "muse_glimmer_assistant": structured.draft,
    "neomme": layouts.flat_patches,
    "nemotron3_5_transcribe_word_timestamp": speech.embedded,
    "omdet-turbo": prompting.classes,
    "oneformer": prompting.task,
    "owlv2": prompting.queries,
    "owlvit": prompting.queries,
    "pe_audio_video_encoder": layouts.seen_and_heard,
    "perceiver": structured.latent_array,
    "pop2piano": speech.features_to_tokens,
    "pi0": layouts.robot,
    "pocket_tts_audio_tokenizer_decoder": speech.latents,
    "pp_ocrv5_mobile_rec": _image(48, 320),
    "pp_ocrv5_server_rec": _image(48, 320),
    "pp_ocrv6_small_rec": _image(48, 320),
    "pp_ocrv6_tiny_rec": _image(48, 320),
    "rf_detr": structured.windowed,
    "rf_detr_dinov2": structured.windowed,
    "edgetam": prompting.points,
    "sam": prompting.points,
    "sam2": prompting.points,
    "sam3_tracker": prompting.points,
    "sam_hq": prompting.points,
    "sam3": prompting.words,
    "seggpt": prompting.example,
    "siglip2": layouts.ragged_patches,
    "siglip2_vision_model": layouts.ragged_patches,
    "superglue": prompting.pair,
    "superpoint": _image(480, 640),
    "tapas": structured.table,
    "tvp": _clip,
    "udop": structured.document,
    "uvdoc": _image(712, 488),
    "vibevoice_acoustic_tokenizer_decoder": speech.latents,
    "vibevoice_acoustic_tokenizer_encoder": speech.channel_wave,
    "voxtral_realtime": speech.spoken_stream,
    "visual_bert": structured.embedded_regions,
    "xclip": _clip,
}
