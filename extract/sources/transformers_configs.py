"""Configurations of the transformers source: defaults made buildable, then cut in depth only.

In: a model type. Out: a `PreTrainedConfig` whose widths, head counts and vocabulary are the library's defaults and
whose repeated layers are cut to a few, at least one of each kind. Repeated layers give repeated subgraphs, so almost
nothing that is unique is lost, and a 30B configuration traces in seconds. Raises LookupError for an unknown model type
and whatever the library raises for a default configuration that is not valid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from extract.sources import transformers_handmade as handmade

#: Layers kept of a homogeneous stack, and at most of a mixed one.
KEPT, MOST = 2, 4

#: Spellings of "number of repeated layers" (one number each). A stack in which layers skip-connect or feed a pyramid
#: (`num_stages`, `block_configs`, ...) is not listed: cutting it would change the architecture, not its depth.
COUNTS = (
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "layers", "depth", "encoder_layers", "decoder_layers",
    "num_encoder_layers", "num_decoder_layers", "encoder_num_hidden_layers", "decoder_num_hidden_layers",
    "l_layers", "r_layers", "x_layers", "num_global_layers", "num_blocks", "resampler_depth",
    "num_self_attends_per_block",
    "speech_encoder_layers", "t2u_encoder_layers", "t2u_decoder_layers", "decoder_num_layers", "num_layers_per_stack",
    "text_encoder_num_layers", "num_spatial_layers", "num_temporal_layers", "num_auxiliary_layers", "n_input_layers",
    "n_recurrent_layers", "n_output_layers", "pred_num_hidden_layers", "conf_num_hidden_layers",
    "memory_attention_num_layers", "num_timestamp_prediction_layers", "prior_encoder_num_wavenet_layers",
    "posterior_encoder_num_wavenet_layers", "perceiver_resampler_num_layers", "num_attention_layers",
    "num_pooler_layers",
)  # fmt: skip
#: Per-stage depths of hierarchical models (one number for each stage; the stages themselves stay).
STAGES = (
    "depths", "blocks_per_stage", "stage_num_blocks", "num_block_repeats", "block_sizes", "n_attn_blocks", "depth",
    "num_layers", "stage_numb_of_layers", "num_hidden_layers",
)  # fmt: skip
#: Lists with one entry for each layer that say which kind of layer it is.
KINDS = (
    "layer_types", "mlp_layer_types", "layers_block_type", "attention_layers", "attn_layers", "block_types",
    "gnn_layers_types", "no_rope_layers",
)  # fmt: skip
#: Lists of layer indices whose outputs are read: all must stay, so as many layers stay.
TAPS = ("backbone_out_indices", "extract_layers", "intermediate_layers_indices", "intermediate_hook_ids", "out_layers")
#: Lists of layer indices at which a layer is of another kind, or something is added.
MARKS = (
    "deepstack_visual_indexes", "fullatt_block_indexes", "global_attn_indexes", "cross_attention_layers",
    "window_block_indices", "attn_layer_indices", "full_attn_idxs", "window_block_indexes",
    "global_attention_blocks", "residual_block_indices", "mlp_only_layers", "moe_layers",
)  # fmt: skip
#: Index of the first sparse (mixture-of-experts) layer, so that a dense and a sparse one stay.
FIRST_SPARSE = ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")


def default(model_type: str) -> PreTrainedConfig:
    """The library's default configuration, with what it leaves out set by hand."""
    if model_type not in CONFIG_MAPPING_NAMES:
        raise LookupError(f"transformers knows no model type {model_type!r}")
    config: PreTrainedConfig = CONFIG_MAPPING[model_type](**handmade.ARGUMENTS.get(model_type, {}))
    for part in reversed(list(parts(config))):  # inner ones first: the whole has the last word
        handmade.mend(part)
        handmade.agree(part)
    return config


def shrunk(model_type: str) -> PreTrainedConfig:
    """The configuration that is built: `default` cut in depth, with private operators and missing padding mended."""
    return cut(default(model_type))


def stated(model_type: str, entries: dict[str, Any]) -> PreTrainedConfig:
    """A published configuration: `entries` over the library's defaults. Raises whatever the library finds wrong."""
    if model_type not in CONFIG_MAPPING_NAMES:
        raise LookupError(f"transformers knows no model type {model_type!r}")
    config: PreTrainedConfig = CONFIG_MAPPING[model_type](**{**handmade.ARGUMENTS.get(model_type, {}), **entries})
    for part in parts(config):
        vocabulary, padding = _own(part, "vocab_size"), _own(part, "pad_token_id")
        if isinstance(vocabulary, int) and isinstance(padding, int) and padding >= vocabulary:
            _set(part, "pad_token_id", 0)  # token numbers are no part of what is kept of a configuration
    return config


def cut(config: PreTrainedConfig) -> PreTrainedConfig:
    """The configuration cut in depth, in place, with private operators and missing padding mended."""
    for part in parts(config):
        shrink(part)
        if hasattr(part, "pad_token_id") and part.pad_token_id is None:
            _set(part, "pad_token_id", 0)  # sequence classifiers refuse batches above one without it
    config._experts_implementation = "batched_mm"  # the default puts an operator private to the library in the graph
    for part in parts(config):
        if getattr(part, "use_cache", None):
            _set(part, "use_cache", False)  # outputs are tensors, not caches
        part._experts_implementation = "batched_mm"
    return config


def parts(config: PreTrainedConfig) -> Iterator[PreTrainedConfig]:
    """The configuration and every configuration inside it, each once."""
    seen: set[int] = set()
    stack: list[Any] = [config]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, PreTrainedConfig):
            yield part
            stack.extend(v for v in vars(part).values() if isinstance(v, PreTrainedConfig | dict | list))
        elif isinstance(part, dict):
            stack.extend(v for v in part.values() if isinstance(v, PreTrainedConfig))
        else:
            stack.extend(v for v in part if isinstance(v, PreTrainedConfig))


def shrink(config: PreTrainedConfig) -> None:
    """Cut one configuration (not those inside it) in depth, in place."""
    special = SPECIAL.get(config.model_type)
    if special is not None:
        special(config)
        return
    staged = False
    for name in STAGES:
        value = _own(config, name)
        if isinstance(value, list | tuple) and value and all(isinstance(v, int) for v in value):
            _set(config, name, type(value)(min(v, KEPT) for v in value))
            staged = True
    if staged:  # the number of layers is the number of stages here
        return
    main = _count_name(config)
    _shrink_kinds(config, main)
    for name in COUNTS:
        value = _own(config, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > KEPT and name != main:
            _set(config, name, KEPT)
    read = _own(config, "vision_feature_layer")  # layers of the encoder inside, counted from either end
    if _indices(read):
        _set(config, "vision_feature_layer", type(read)(max(-KEPT - 1, min(i, KEPT)) for i in read))
    for name in FIRST_SPARSE:
        value = _own(config, name)
        if isinstance(value, int) and value > 1:
            _set(config, name, 1)  # one dense layer, then a sparse one


def _shrink_kinds(config: PreTrainedConfig, name: str | None) -> None:
    """Cut the main stack: keep the first layer of each kind, and slice every list with one entry a layer alike."""
    if name is None:  # the number of layers is the length of their list
        for key in KINDS:
            value = _own(config, key)
            if isinstance(value, list):
                _set(config, key, [value[i] for i in _kept_layers(config, len(value), 0, [])])
        return
    count = getattr(config, name)
    taps = {key: value for key in TAPS if _indices(value := _own(config, key))}
    marks = {key: value for key in MARKS if _indices(value := _own(config, key))}
    outputs = list(getattr(config, "out_indices", None) or []) if hasattr(config, "stage_names") else []
    read = max([len(v) for v in taps.values()] + [len(outputs)], default=0)
    keep = _kept_layers(config, count, read, list(marks.values()))
    if len(keep) < count:
        for key, value in list(vars(config).items()):
            if isinstance(value, list | tuple) and len(value) == count and key not in (*STAGES, *TAPS, *MARKS):
                own = list(value) == list(range(count))  # each layer names itself, and must go on doing so
                _set(config, key, type(value)(range(len(keep)) if own else (value[i] for i in keep)))
        for key, value in marks.items():
            _set(config, key, type(value)(keep.index(i) for i in value if i in keep))
        for key, value in taps.items():
            _set(config, key, _last(value, len(keep)))
        _set(config, name, len(keep))
        if outputs:
            config.stage_names = ["stem", *(f"stage{i + 1}" for i in range(len(keep)))]
            config.set_output_features_output_indices(out_indices=_last(outputs, len(keep) + 1), out_features=None)
    if getattr(config, "num_kv_shared_layers", 0):
        _set(config, "num_kv_shared_layers", 0)  # the shared tail points back at layers that were cut


def _indices(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(v, int) for v in value)


def _last(taps: Any, layers: int) -> Any:
    """As many layer indices as `taps` has, moved to the end of a stack of `layers`; negative ones stay as they are."""
    if all(t < layers for t in taps):
        return taps
    first = max(layers - len(taps), 0)
    return type(taps)(t if t < 0 else min(first + i, layers - 1) for i, t in enumerate(taps))


def _kept_layers(config: PreTrainedConfig, count: int, read: int, marks: list[Any]) -> list[int]:
    """Indices of the layers kept, in order: the first of each kind, at least `KEPT` (and as many as are read out)."""
    lists = [v for k in KINDS if isinstance(v := _own(config, k), list | tuple) and len(v) == count]
    firsts: dict[tuple[Any, ...], int] = {}
    for i in range(count):
        firsts.setdefault((*(v[i] for v in lists), *(i in m for m in marks)), i)
    keep = sorted(firsts.values())[:MOST]
    for i in range(count):
        if len(keep) >= max(KEPT, min(read, MOST)):
            break
        if i not in keep:
            keep.append(i)
    return sorted(keep)


def _count_name(config: PreTrainedConfig) -> str | None:
    """The attribute that holds the length of the main stack, under its own spelling."""
    mapped = config.attribute_map.get("num_hidden_layers", "num_hidden_layers")
    for name in (mapped, *COUNTS):
        value = _own(config, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return name
    return None


def _own(config: PreTrainedConfig, name: str) -> Any:
    """The attribute as stored; None where it is absent or computed from another."""
    return vars(config).get(name)


def _set(config: PreTrainedConfig, name: str, value: Any) -> None:
    with contextlib.suppress(AttributeError, NotImplementedError):  # read-only properties follow what they are made of
        setattr(config, name, value)


def _keep(**values: Any) -> Callable[[PreTrainedConfig], None]:
    """A shrinker that sets exactly these attributes."""

    def apply(config: PreTrainedConfig) -> None:
        for name, value in values.items():
            _set(config, name, value)

    return apply


def _zamba(config: PreTrainedConfig) -> None:
    """Mamba and hybrid layers in turn; hybrid ones share their attention block, so there must be two of them."""
    hybrid = [i for i, kind in enumerate(config.layers_block_type) if kind == "hybrid"][:2]
    config.layers_block_type = ["linear_attention", "hybrid", "linear_attention", "hybrid"][: 2 * len(hybrid)]
    config.num_hidden_layers = len(config.layers_block_type)
    if hasattr(config, "hybrid_layer_ids"):
        config.hybrid_layer_ids = [i for i, kind in enumerate(config.layers_block_type) if kind == "hybrid"]


def _hiera(config: PreTrainedConfig) -> None:
    """Stages of windowed blocks; in the third, the block that pools its queries must not be a global one."""
    config.blocks_per_stage = [1, 2, 3, 2]
    config.global_attention_blocks = [5]


#: Model types whose depth is described in their own way.
SPECIAL: dict[str, Callable[[PreTrainedConfig], None]] = {
    "zamba": _zamba,
    "zamba2": _zamba,
    # Layers are told apart by period and offset: Mamba, Mamba with experts, attention, Mamba with experts.
    "jamba": _keep(num_hidden_layers=4, attn_layer_period=4, attn_layer_offset=2),
    "recurrent_gemma": _keep(num_hidden_layers=3),  # recurrent, recurrent, attention: the pattern it repeats
    # Two stacks run in cycles: every pass of a layer counts as a layer (for the cache).
    "hrm_text": lambda c: _keep(num_layers_per_stack=KEPT, num_hidden_layers=KEPT * c.H_cycles * (c.L_cycles + 1))(c),
    "sam2_hiera_det_model": _hiera,
    "depth_pro": _keep(intermediate_hook_ids=(1, 0)),  # layers of the backbone inside, which is cut to two
    "cvt": _keep(depth=(1, 2, 3)),  # drop rates are read at the stage's own index: stage i needs more than i blocks
}
