"""Facts that default configurations of transformers leave out, without which a model type builds no usable model.

`ARGUMENTS` go to the configuration's constructor, `MENDS` are set afterwards on every configuration of the type, nested
ones too (dotted names reach inside). Values are those of the published checkpoints where there is one, and otherwise
the smallest change that makes the parts of the configuration agree with each other.
"""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig

_VQ_TOKENS = {
    "<image>": 8711,
    **{f"IMGIMG{''.join('ABCDEFGHIJ'[int(d)] for d in str(i))}Z": 4 + i for i in range(8192)},
}
_EMU_TOKENS = {"<image>": 151_851, **{f"<|visual token {i:06d}|>": 151_854 + i for i in range(32_768)}}
_EMU_TOKENS["<|extra_200|>"] = 151_846

#: model type -> constructor arguments.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "autoformer": {"prediction_length": 24, "context_length": 48},
    "informer": {"prediction_length": 24, "context_length": 48},
    "time_series_transformer": {"prediction_length": 24, "context_length": 48},
    "timm_backbone": {"backbone": "resnet50"},
    "esm": {"vocab_size": 33, "mask_token_id": 32, "pad_token_id": 1},
    "chameleon": {"vocabulary_map": _VQ_TOKENS, "image_token_id": 8711},
    "emu3": {"vocabulary_map": _EMU_TOKENS, "image_token_id": 151_851},
    "lfm2_moe": {"layer_types": (["conv", "conv", "full_attention", "conv"] * 8)},
    "gemma4_assistant": {
        "text_config": {
            "model_type": "gemma4_text",
            "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": 0,
            "num_kv_shared_layers": 0,
        }
    },
}

_MROPE = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}
_BY_KIND = {"rope_type": "default", "rope_theta": 10_000.0}
_OCR_BLOCK = {
    "reduce_channel": [1, 1, 0],
    "return_channel": [1, 1, 0],
    "vertical_long_to_small_conv_longratio": [[7, 1], [1, 1], [3, 0]],
    "vertical_long_to_small_conv_midratio": [[5, 1], [1, 1], [2, 0]],
    "vertical_long_to_small_conv_shortratio": [[3, 1], [1, 1], [1, 0]],
    "horizontal_small_to_long_conv_longratio": [[1, 7], [1, 1], [0, 3]],
    "horizontal_small_to_long_conv_midratio": [[1, 5], [1, 1], [0, 2]],
    "horizontal_small_to_long_conv_shortratio": [[1, 3], [1, 1], [0, 1]],
    "symmetric_conv_long_longratio": [[7, 7], [1, 1], [3, 3]],
    "symmetric_conv_long_midratio": [[5, 5], [1, 1], [2, 2]],
    "symmetric_conv_long_shortratio": [[3, 3], [1, 1], [1, 1]],
}
_OCR = {"intraclass_block_config": _OCR_BLOCK, "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2]}

#: model type -> attributes.
MENDS: dict[str, dict[str, Any]] = {
    "aria": {"vision_config.image_size": 490, "vision_config.patch_size": 14},  # 35 by 35 patches
    "voxtral": {"audio_token_id": 24},
    "aya_vision": {"vision_config.num_attention_heads": 16, "vision_config.image_size": 364},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _BY_KIND, "sliding_attention": _BY_KIND}},
    "dbrx": {"attn_config.rope_theta": 10_000.0},
    "deepseek_v2": {"num_experts_per_tok": 6, "first_k_dense_replace": 1},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense"] + ["sparse"] * 31, "num_experts_per_tok": 6},
    "diffusion_gemma_text": {"num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704},
    "dots1": {"n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1},
    "gemma3": {"vision_config.image_size": 896, "vision_config.patch_size": 14},  # pooled to 16 by 16 tokens
    "shieldgemma2": {"vision_config.image_size": 896, "vision_config.patch_size": 14},
    "t5gemma2_encoder": {"vision_config.image_size": 896, "vision_config.patch_size": 14},
    "glm4v_text": {"rope_parameters": _MROPE},
    "glm4v_moe_text": {"rope_parameters": _MROPE, "head_dim": 128},
    "glm_image_text": {"rope_parameters": _MROPE},
    "blip-2": {"image_token_index": 50_265},
    "instructblip": {"image_token_index": 50_265},
    "instructblipvideo": {"video_token_index": 50_265, "image_token_index": 50_265},
    "granite_speech": {"projector_config.encoder_hidden_size": 1024},
    "granite_speech_plus": {"projector_config.encoder_hidden_size": 1024},
    "modernvbert": {"vision_config.image_size": 256},
    "ultravbert": {"vision_config.image_size": 256},
    "granite4_vision": {
        "downsample_rate": "4/8", "deepstack_layer_map": [[-1, 1]], "vision_config.image_size": 336,
        "vision_config.patch_size": 14,
    },
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "hunyuan_vl_text": {
        "head_dim": 128,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [16, 16, 16, 16]},
    },
    "llama4_vision_model": {"hidden_size": 1408, "vision_output_dim": 4096},
    "idefics3_vision": {"image_size": 256},  # a whole number of patches after folding two by two
    "smolvlm_vision": {"image_size": 256},
    "pp_doclayout_v2": {"class_thresholds": [0.5] * 25, "class_order": list(range(25))},
    "pp_ocrv6_small_det": {
        "layer_list_out_channels": (96, 96, 192, 384),
        "backbone_config.out_features": ["stage1", "stage2", "stage3", "stage4"],
    },
    "uvdoc": {"backbone_config.out_features": [f"stage{i}" for i in range(1, 7)]},
    "ministral": {"head_dim": 128},
    "moonshine_streaming": {"num_key_value_heads": 8},
    "nemotron": {"num_key_value_heads": 8},
    "edgetam_vision_model": {"backbone_config.architecture": "repvit_m1"},
    "perception_lm": {
        "vision_config.architecture": "vit_pe_core_large_patch14_336",
        "vision_config.model_args": {
            "embed_dim": 1024, "depth": 2, "global_pool": "", "use_post_transformer_norm": False,
            "img_size": [224, 224]},
    },
    "pp_ocrv5_server_det": _OCR,
    "pp_ocrv6_medium_det": _OCR,
    "qwen4_exp_text": {
        "indexer_n_heads": 16, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 2048,
        "indexer_compress_ratio": 4,
    },
    "step3p5": {"sliding_window": 512},
    "t5gemma2_text": {"dropout_rate": 0.0},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 384},
}  # fmt: skip

#: Attributes that the library adds to a list, and declares as a tuple.
LISTS = {"focalnet": ("hidden_sizes",), "vitmatte": ("fusion_hidden_sizes",)}


def mend(config: PreTrainedConfig) -> None:
    """Set what is missing on one configuration (not on those inside it), in place."""
    for path, value in MENDS.get(config.model_type, {}).items():
        *inside, name = path.split(".")
        owner = config
        for step in inside:
            owner = getattr(owner, step)
        setattr(owner, name, value)
    for name in LISTS.get(config.model_type, ()):
        setattr(config, name, list(getattr(config, name)))


#: Widths by which one part hands its output to the text part; defaults of the parts are made apart and may differ.
HANDED_ON = ("out_hidden_size", "output_dim", "text_hidden_size", "projection_output_dim")


def agree(config: PreTrainedConfig) -> None:
    """Let the image, video and sound parts of a composite put out what its text part takes in."""
    text = getattr(config, "text_config", None)
    width = getattr(text, "hidden_size", None)
    if not isinstance(width, int):
        return
    for name in ("vision_config", "audio_config"):
        part = getattr(config, name, None)
        for key in HANDED_ON:
            if isinstance(part, PreTrainedConfig) and isinstance(getattr(part, key, None), int):
                setattr(part, key, width)
