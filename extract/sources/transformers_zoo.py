"""The transformers source: every configuration type with every class that the library's auto mappings give it.

Names come from the auto mappings alone, without importing a modelling file; `ref` makes one configuration (a few
milliseconds), `build` one module with random weights. Nothing is downloaded and no remote code is trusted.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import metadata
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the library on import: building never reaches for a hub

import transformers
from torch import nn
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import model_type_to_module_name

from extract.model import ExampleInputs, ModelRef, canonical_config
from extract.sources import transformers_configs as configs
from extract.sources.registry import register

#: Configuration entries that shape no module: provenance, output flags, label names, tables of token names.
UNSTRUCTURAL = {
    "transformers_version", "_name_or_path", "architectures", "dtype", "id2label", "label2id",
    "return_dict", "output_attentions", "output_hidden_states", "task_specific_params", "problem_type",
    "vocabulary_map",
}  # fmt: skip

#: Mappings that say little about what a class does; another mapping of the same pair, if any, gives its task.
VAGUE = ("features", "pretraining", "text-encoding", "image")
#: Task of an auto mapping -> modality, where the task alone tells.
MODALITIES = {
    "vision": (
        "backbone", "causal-image-modeling", "depth-estimation", "image", "image-classification", "image-matting",
        "image-segmentation", "image-to-image", "instance-segmentation", "keypoint-detection", "keypoint-matching",
        "mask-generation", "masked-image-modeling", "normal-estimation", "object-detection", "pointmap-estimation",
        "pose-estimation", "semantic-segmentation", "table-recognition", "text-recognition", "universal-segmentation",
    ),
    "video": ("video-classification",),
    "audio": (
        "audio-classification", "audio-frame-classification", "audio-xvector", "ctc", "rnnt", "speech-seq-2-seq", "tdt",
        "text-to-spectrogram", "text-to-waveform",
    ),
    "multimodal": (
        "document-question-answering", "image-text-to-text", "multimodal-lm", "retrieval", "visual-question-answering",
        "zero-shot-image-classification", "zero-shot-object-detection",
    ),
    "time-series": ("time-series-classification", "time-series-prediction", "time-series-regression"),
}  # fmt: skip
#: Modality -> configuration entries that only such models have; looked at in this order.
TELLING = {
    "time-series": ("prediction_length", "num_input_channels", "horizon_length"),
    "audio": (
        "num_mel_bins",
        "feat_extract_norm",
        "sampling_rate",
        "audio_channels",
        "codebook_size",
        "conv_pos_kernel_size",
    ),
    "video": ("tubelet_size", "num_frames"),
    "vision": ("patch_size", "num_channels", "image_size", "stage_names", "backbone_config", "in_channels"),
}


@cache
def _pairs() -> dict[str, str]:
    """`model_type/ClassName` -> task, in the order of the auto mappings."""
    found: dict[str, str] = {}
    for mapping, entries in vars(modeling_auto).items():
        if not mapping.endswith("_MAPPING_NAMES") or mapping.startswith("CONFIG"):
            continue
        words = mapping.removesuffix("_MAPPING_NAMES").removeprefix("MODEL").removeprefix("_FOR").strip("_")
        task = words.lower().replace("_", "-") or "features"
        for model_type, classes in entries.items():
            for name in classes if isinstance(classes, list | tuple) else (classes,):
                pair = f"{model_type}/{name}"
                if found.get(pair, "features") in VAGUE:
                    found[pair] = task
    return found


@register("transformers")
class TransformersSource:
    """Names are `model_type/ClassName`, as in `bert/BertForMaskedLM`."""

    name = "transformers"

    def names(self) -> Iterator[str]:
        """Every pair of a configuration type and a class: base models first, then one head after another."""
        yield from _pairs()

    def list(self) -> Iterator[ModelRef]:
        for name in self.names():
            yield self.ref(name)

    def ref(self, name: str) -> ModelRef:
        """The named pair. LookupError, with the nearest name, for one that the library does not have."""
        pairs = _pairs()
        if name not in pairs:
            near = difflib.get_close_matches(name, pairs, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise LookupError(f"transformers has no model {name!r}{hint}")
        model_type, cls = name.split("/")
        content, modality, family = _described(model_type)
        return ModelRef(
            source=self.name,
            name=name,
            config=canonical_config({"class": cls, "config": content}),
            family=family,
            task=pairs[name],
            modality=next((m for m, tasks in MODALITIES.items() if pairs[name] in tasks), modality),
            revision=f"transformers {transformers.__version__}",
            license=_license(),
        )

    def build(self, ref: ModelRef) -> nn.Module:
        model_type, name = ref.name.split("/")
        return module_of(configs.shrunk(model_type), name)

    def inputs(self, ref: ModelRef, model: nn.Module) -> ExampleInputs:
        from extract.sources.transformers_inputs import example_inputs

        return ExampleInputs(kwargs=example_inputs(model))


def module_of(config: transformers.PreTrainedConfig, name: str) -> nn.Module:
    """The class called `name` built from a configuration, or from the part of it that the class takes."""
    cls = getattr(transformers, name, None)
    if cls is None:  # a few classes are mapped but not exported
        cls = getattr(import_module(type(config).__module__.replace("configuration_", "modeling_")), name)
    wanted = cls.config_class
    if wanted is not None and not isinstance(config, wanted):  # mapped to the whole, made from a part of it
        config = next((part for part in configs.parts(config) if isinstance(part, wanted)), config)
    module: nn.Module = cls(config)
    return module


@cache
def _license() -> str:
    """The license of the package, as an SPDX name where its metadata uses another."""
    stated = metadata("transformers")
    text = next((stated[key] for key in ("License-Expression", "License") if key in stated), "")
    return {"Apache 2.0 License": "apache-2.0"}.get(text, text.lower())


@cache
def _described(model_type: str) -> tuple[dict[str, Any], str, str]:
    """(structural content, modality, family) of a model type. A default that is no valid configuration is only named:
    building it gives the library's own error."""
    family = model_type_to_module_name(model_type)
    try:
        config = configs.shrunk(model_type)
    except Exception as error:  # the library's validators raise many things; `build` raises them again, to be classed
        return {"model_type": model_type, "invalid": type(error).__name__}, "text", family
    return _structural(config.to_dict()), _modality(config), family


def _structural(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _structural(v) for k, v in value.items() if k not in UNSTRUCTURAL}
    if isinstance(value, list | tuple):
        return [_structural(v) for v in value]
    return value


def _modality(config: transformers.PreTrainedConfig) -> str:
    """What a base model reads, told by its configuration."""
    inside = vars(config)
    reads_text = inside.get("text_config") is not None or isinstance(inside.get("vocab_size"), int)
    senses = [name for name in ("vision_config", "audio_config") if inside.get(name) is not None]
    told = next((m for m, names in TELLING.items() if any(inside.get(name) is not None for name in names)), "")
    if reads_text and (senses or told == "vision"):
        return "multimodal"
    named = next((m for m in ("vision", "audio", "video") if f"_{m}" in config.model_type), "")
    return told or named or ("text" if reads_text or not senses else senses[0].removesuffix("_config"))
