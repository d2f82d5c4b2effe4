"""Sound models whose inputs are not one spectrogram or wave: speech synthesis, codecs' decoders, code books."""

from __future__ import annotations

from typing import Any

import torch

from extract.sources.transformers_inputs.facts import Facts


def hidden_to_hidden(facts: Facts) -> dict[str, Any]:
    """SpeechT5 without its pre-nets: hidden states on both sides."""
    size = facts.config.hidden_size
    return {"input_values": torch.randn(1, 24, size), "decoder_input_values": torch.randn(1, 8, size)}


def text_to_frames(facts: Facts) -> dict[str, Any]:
    """SpeechT5: text in, previous spectrogram frames and a speaker vector beside it."""
    return {
        "input_ids": facts.ids(),
        "decoder_input_values": torch.randn(1, 8, facts.config.num_mel_bins),
        "speaker_embeddings": torch.randn(1, facts.config.speaker_embedding_dim),
    }


def wave_to_text(facts: Facts) -> dict[str, Any]:
    return {"input_values": torch.randn(1, 16_000), "decoder_input_ids": torch.randint(3, 60, (1, 8))}


def code_books(facts: Facts) -> dict[str, Any]:
    """Dia: text, and decoder ids for each code book (1, length, books)."""
    books = facts.get("num_channels", config=facts.part("decoder_config")) or 9
    return {"input_ids": facts.ids(), "decoder_input_ids": torch.randint(0, 1000, (1, 8, books))}


def flat_books(facts: Facts) -> dict[str, Any]:
    """MusicGen's decoder: one row for each code book."""
    books = facts.get("num_codebooks", default=4)
    return {"input_ids": torch.randint(0, 2000, (books, 8))}


def prompted_books(facts: Facts) -> dict[str, Any]:
    """MusicGen: a text prompt, and one decoder row for each code book."""
    books = facts.get("num_codebooks", config=facts.part("decoder")) or 4
    return {"input_ids": facts.ids(), "decoder_input_ids": torch.randint(0, 2000, (books, 8))}


def latents(facts: Facts) -> dict[str, Any]:
    """Decoders of codecs: (1, channels, frames)."""
    size = facts.get("hidden_size", "latent_dim", "vae_dim", default=512)
    name = "latents" if "latents" in facts.accepts else "hidden_states"
    return {name: torch.randn(1, size, 24)}


def channel_wave(facts: Facts) -> dict[str, Any]:
    """A wave with a channel axis (1, 1, samples), under the name the forward gives it."""
    name = "input_values" if "input_values" in facts.accepts else "hidden_states"
    given: dict[str, Any] = {name: torch.randn(1, 1, 24_000)}
    if "input_ids" in facts.accepts:
        given["input_ids"] = facts.ids()
    return given


def text_and_books(facts: Facts) -> dict[str, Any]:
    """Kyutai speech to text: a text token and one code of each book a step (1, length, 1 + books)."""
    return {"input_ids": torch.randint(3, 2000, (1, 24, facts.config.num_codebooks + 1))}


def spoken_stream(facts: Facts) -> dict[str, Any]:
    """Voxtral Realtime: one text token beside every eight spectrogram frames (1, bins, frames)."""
    return {"input_ids": facts.ids(24), "input_features": torch.randn(1, facts.audio.num_mel_bins, 24 * 8)}


def embedded(facts: Facts) -> dict[str, Any]:
    """Models that read embeddings alone."""
    return {"inputs_embeds": torch.randn(1, 24, facts.config.hidden_size)}


def features_to_tokens(facts: Facts) -> dict[str, Any]:
    """Pop2Piano: spectrogram embeddings in place of the encoder's tokens."""
    return {
        "input_features": torch.randn(1, 24, facts.config.d_model),
        "decoder_input_ids": torch.randint(3, 400, (1, 8)),
    }
