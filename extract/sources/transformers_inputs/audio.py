"""Sound: spectrogram features or a raw wave, by what the encoder reads."""

from __future__ import annotations

from typing import Any

import torch

from extract.sources.transformers_inputs import packed
from extract.sources.transformers_inputs.facts import Facts
from extract.sources.transformers_inputs.text import decoder_ids

#: Samples of a wave (about a second at 16 kHz, whole frames for every codec) and frames of a spectrogram.
SAMPLES, FRAMES = 15_360, 256


def bins(facts: Facts) -> int:
    """Size of one spectrogram frame."""
    names = ("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "input_feat_size",
             "feature_size", "input_dim", "input_size")  # fmt: skip
    value = facts.get(*names, config=facts.audio) or facts.get(*names, default=80)
    stacked = facts.get("num_stacked_frames", config=facts.audio) or STACKED.get(facts.audio.model_type, 1)
    return int(value) * stacked


def spectrogram(facts: Facts) -> torch.Tensor:
    """(1, bins, frames) for encoders that convolve as Whisper does, with its fixed length; else (1, frames, bins)."""
    positions = facts.get("max_source_positions", config=facts.audio)
    if facts.kind in CHANNELS_FIRST or facts.audio.model_type in CHANNELS_FIRST:
        return torch.randn(1, bins(facts), 2 * positions if positions else FRAMES)
    if facts.audio.model_type in WINDOWED:
        return torch.randn(1, bins(facts), 4 * facts.audio.n_window)
    return torch.randn(1, FRAMES, bins(facts))


def length(facts: Facts, values: torch.Tensor) -> int:
    """Frames of a spectrogram, whichever axis they are on."""
    first = facts.kind in CHANNELS_FIRST or facts.audio.model_type in CHANNELS_FIRST | WINDOWED
    return int(values.shape[-1] if first else values.shape[1])


def features(facts: Facts) -> dict[str, Any]:
    """`input_features`, a full mask where one is required, decoder ids where there is a decoder."""
    values = spectrogram(facts)
    given: dict[str, Any] = {"input_features": values}
    frames = length(facts, values)
    for name in ("input_features_mask", "feature_attention_mask"):
        if name in facts.accepts:
            given[name] = torch.ones(1, frames, dtype=torch.long)
    if facts.kind in WINDOWED:  # segment bounds, which the encoder would read off the mask by value
        given = packed.derived(facts.model, **given)
    if "input_values" in facts.required:
        given["input_values"] = torch.randn(1, 1, SAMPLES)
    if "decoder_input_ids" in facts.accepts:
        given["decoder_input_ids"] = decoder_ids(facts)
    return given


def wave(facts: Facts) -> dict[str, Any]:
    """`input_values`: (1, samples), or (1, channels, samples) for codecs."""
    if facts.kind in SPECTRAL:
        return {"input_values": torch.randn(1, facts.get("max_length", default=FRAMES), bins(facts))}
    given: dict[str, Any] = {"input_values": torch.randn(1, SAMPLES)}
    if facts.kind in CODECS or facts.audio.model_type in CODECS:
        given["input_values"] = torch.randn(1, facts.get("audio_channels", "num_channels", default=1), 24_000)
    if "input_features" in facts.required:
        given["input_features"] = torch.randn(1, FRAMES, bins(facts))
    if "decoder_input_ids" in facts.accepts:
        given["decoder_input_ids"] = decoder_ids(facts)
    return given


CHANNELS_FIRST = {
    "whisper", "qwen2_audio", "qwen2_audio_encoder", "voxtral", "voxtral_encoder", "audioflamingo3", "glmasr",
    "audioflamingo3_encoder", "glmasr_encoder", "musicflamingo", "moss_transcribe_diarize", "voxtral_realtime",
    "moss_transcribe_diarize_audio", "voxtral_realtime_encoder", "clvp",
}  # fmt: skip
#: Frames that a feature extractor stacks into one, where the configuration does not say.
STACKED = {"granite_speech5_encoder": 4}
#: Encoders that cut (1, bins, frames) into windows, and want whole ones.
WINDOWED = {"qwen3_asr_encoder"}
#: `input_values` that are spectrograms (1, frames, bins).
SPECTRAL = {"audio-spectrogram-transformer"}
#: Codecs read (1, channels, samples).
CODECS = {
    "dac", "encodec", "higgs_audio_v2_tokenizer", "mimi", "mimi_encoder", "neucodec", "omniasr",
    "omniasr_audio", "omniasr_ctc", "pe_audio", "pe_audio_encoder", "pe_audio_video", "pe_audio_video_encoder",
    "pocket_tts_audio_tokenizer", "pocket_tts_audio_tokenizer_encoder", "vibevoice",
    "vibevoice_acoustic_tokenizer", "vibevoice_asr", "wavtokenizer", "wavtokenizer_encoder", "xcodec",
    "xcodec2",
}  # fmt: skip
