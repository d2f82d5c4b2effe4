"""A stranger's config.json, checked and reduced to what shapes the graph.

`normalise` drops what training leaves behind, unifies renamed keys and drops what equals the library's default, so
that fine-tunes give equal texts. `Refused` for values that no model has: nothing here builds anything.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

from extract.model import canonical_config
from extract.sources.hub.client import Refused

#: Entries that shape no graph in our sense: names, tokens, labels, training, generation, storage.
DROPPED = {
    "architectures", "auto_map", "bad_words_ids", "begin_suppress_tokens", "dtype", "torch_dtype", "finetuning_task",
    "forced_bos_token_id", "forced_decoder_ids", "forced_eos_token_id", "gradient_checkpointing", "id2label",
    "initializer_factor", "initializer_range", "keys_to_ignore_at_inference", "label2id", "length_penalty",
    "max_length", "min_length", "model_type", "num_beams", "num_labels", "output_attentions", "output_hidden_states",
    "prefix", "problem_type", "quantization_config", "return_dict", "suppress_tokens", "task_specific_params",
    "tokenizer_class", "torchscript", "transformers_version", "unsloth_version", "use_cache", "attn_implementation",
    "pretraining_tp", "no_repeat_ngram_size", "early_stopping", "is_decoder_only",
}  # fmt: skip
#: Endings of such entries.
_DROPPED_ENDS = (
    "_token_id",
    "_token_ids",
    "_token_index",
    "dropout",
    "_dropout_prob",
    "_pdrop",
    "drop_rate",
    "layerdrop",
)
_SIZES = (
    "size",
    "dim",
    "layers",
    "heads",
    "channels",
    "hidden",
    "width",
    "depth",
    "experts",
    "n_embd",
    "d_model",
    "d_ff",
)
_LAYERS = ("layer", "depth", "blocks")
#: Bounds on what a configuration may hold: far beyond any published model.
MOST_ENTRIES, DEEPEST, LONGEST_TEXT = 20_000, 8, 1000
MOST_LAYERS, LARGEST = 1024, 10_000_000
#: What a timm configuration may change of an architecture.
_TIMM_ARGUMENTS = ("img_size", "in_chans", "global_pool", "embed_dim", "depth", "num_heads", "patch_size")


def normalise(library: str, model_type: str, architecture: str, config: Any) -> str:
    """Canonical JSON from which `HubSource.build` makes the module. Refused for hostile or senseless values."""
    if not isinstance(config, dict):
        raise Refused("config_refused", f"config.json is a {type(config).__name__}, no object")
    check(config)
    if library == "timm":
        return _timm(config)
    if config.get("model_type") != model_type or architecture not in (config.get("architectures") or [architecture]):
        raise Refused("config_refused", "config.json is not of the model type that the listing says")
    defaults, renamed = _class(model_type)
    entries: dict[str, Any] = {}
    for key, value in _kept(config).items():
        name = renamed.get(key, key)
        if name not in defaults or defaults[name] == value and type(defaults[name]) is type(value):
            continue
        if isinstance(defaults[name], int | float) and not isinstance(value, int | float | None):
            raise Refused("config_refused", f"{name} is a {type(value).__name__}, no number")
        entries[name] = value
    return canonical_config({"library": "transformers", "type": model_type, "class": architecture, "config": entries})


def timm_by_name(name: str) -> str:
    """The configuration of a model whose repository is called `timm/<name>`. Refused when timm has no such name."""
    import timm

    from extract.sources.timm_zoo import TimmSource

    architecture = name.split(".")[0]
    if not timm.is_model(architecture):
        raise Refused("architecture_unknown", "timm has no such architecture")
    known = json.loads(TimmSource().ref(name).config)
    given = {"architecture": architecture, "num_classes": known["num_classes"], "input_size": known["input_size"]}
    return canonical_config({"library": "timm", **given, "arguments": {}})


def _timm(config: dict[str, Any]) -> str:
    import timm

    architecture = config.get("architecture")
    if not isinstance(architecture, str) or not timm.is_model(architecture):
        raise Refused("architecture_unknown", "timm has no such architecture")
    told = config.get("pretrained_cfg")
    told = told if isinstance(told, dict) else {}
    size = told.get("input_size", config.get("input_size", [3, 224, 224]))
    if not (isinstance(size, list) and len(size) == 3 and all(type(v) is int and 0 < v <= 4096 for v in size)):
        raise Refused("config_refused", "input_size is not three sizes of an image")
    arguments = config.get("model_args") or {}
    if not isinstance(arguments, dict) or not set(arguments) <= set(_TIMM_ARGUMENTS):
        raise Refused("config_refused", "model_args holds arguments that are not passed on")
    given = {
        "architecture": architecture,
        "num_classes": 1000 if config.get("num_classes") else 0,  # label counts are names: fine-tunes collapse
        "input_size": size,
        "arguments": arguments,
    }
    return canonical_config({"library": "timm", **given})


def check(value: Any) -> None:
    """Refused when a value is deeper, longer, larger or more negative than a configuration can mean."""
    left = MOST_ENTRIES
    stack: list[tuple[str, Any, int]] = [("", value, 0)]
    while stack:
        name, held, deep = stack.pop()
        left -= 1
        if left < 0 or deep > DEEPEST:
            raise Refused("config_refused", "more, or more deeply nested, entries than a configuration has")
        if isinstance(held, dict):
            for key, inner in held.items():
                if len(key) > LONGEST_TEXT:
                    raise Refused("config_refused", "an entry's name is longer than a thousand characters")
                stack.append((key, inner, deep + 1))
        elif isinstance(held, list):
            stack.extend((name, inner, deep + 1) for inner in held)
        elif isinstance(held, str) and len(held) > LONGEST_TEXT and name not in DROPPED and "template" not in name:
            raise Refused("config_refused", f"{_said(name)} is a text of {len(held)} characters")
        elif isinstance(held, int | float) and not isinstance(held, bool):
            _check_number(name, held)


def _check_number(name: str, held: int | float) -> None:
    if isinstance(held, float) and not math.isfinite(held):
        raise Refused("config_refused", f"{_said(name)} is not finite")
    if not isinstance(held, int):
        return
    sizes = any(word in name for word in _SIZES)
    if sizes and not -1 <= held <= LARGEST:
        raise Refused("config_refused", f"{_said(name)} is negative or enormous")
    if any(word in name for word in _LAYERS) and abs(held) > MOST_LAYERS:
        raise Refused("config_refused", f"{_said(name)} is more layers than any model has")
    if abs(held) > 2**62:
        raise Refused("config_refused", f"{_said(name)} is no number that a tensor could use")


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _kept(v) for k, v in value.items() if not _leftover(k)}
    return [_kept(v) for v in value] if isinstance(value, list) else value


def _leftover(key: str) -> bool:
    return key in DROPPED or key.startswith("_") or key.endswith(_DROPPED_ENDS)


def _said(name: str) -> str:
    return ascii(name[:60])


@cache
def _class(model_type: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The library's defaults of a model type, and standard names -> its own names for them."""
    from extract.sources import transformers_configs

    try:
        config = transformers_configs.default(model_type)
    except Exception as error:  # its own validators raise many things: no stranger's value is in play here
        raise Refused("architecture_unknown", f"{model_type} has no default configuration") from error
    renamed = {str(k): str(v) for k, v in (getattr(config, "attribute_map", None) or {}).items()}
    return config.to_dict(), renamed
