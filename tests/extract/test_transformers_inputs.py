"""Example inputs are accepted by real forwards, one narrow model for each kind of input."""

import pytest
import torch
import transformers as t
from torch import nn

from extract.sources.transformers_inputs import example_inputs

NARROW = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
LLAMA = {**NARROW, "num_key_value_heads": 4, "vocab_size": 120, "pad_token_id": 0}
SMALL_IMAGE = {**NARROW, "image_size": 32, "patch_size": 8}


def _llava():
    vision = t.CLIPVisionConfig(**SMALL_IMAGE, projection_dim=32)
    return t.LlavaForConditionalGeneration(
        t.LlavaConfig(vision_config=vision, text_config=t.LlamaConfig(**LLAMA), image_token_index=119)
    )


def _qwen_vl():
    vision = {"depth": 2, "hidden_size": 32, "num_heads": 4, "intermediate_size": 48, "out_hidden_size": 32}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
    return t.Qwen2_5_VLForConditionalGeneration(
        t.Qwen2_5_VLConfig(
            vision_config=vision, text_config={**LLAMA, "rope_parameters": rope}, image_token_id=118,
            video_token_id=117, vision_start_token_id=116, vision_end_token_id=115,
        )
    )  # fmt: skip


def _whisper():
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
    config = t.WhisperConfig(
        **sizes, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=120, num_mel_bins=8,
        max_source_positions=50, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return t.WhisperForConditionalGeneration(config)


def _t5():
    return t.T5ForConditionalGeneration(
        t.T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=120, decoder_start_token_id=0)
    )


def _wav2vec2():
    config = t.Wav2Vec2Config(**NARROW, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), vocab_size=32)
    config.num_conv_pos_embedding_groups, config.num_conv_pos_embeddings = 4, 16
    return t.Wav2Vec2ForCTC(config)


def _informer():
    return t.InformerForPrediction(
        t.InformerConfig(
            prediction_length=4, context_length=8, d_model=16, lags_sequence=[1, 2], num_time_features=2,
            encoder_ffn_dim=16, decoder_ffn_dim=16,
        )
    )  # fmt: skip


def _sam():
    vision = t.SamVisionConfig(
        **SMALL_IMAGE, output_channels=16, mlp_dim=48, num_pos_feats=8, window_size=2, global_attn_indexes=[1]
    )
    prompt = {"hidden_size": 16, "image_size": 32, "patch_size": 8}
    mask = {"hidden_size": 16, "mlp_dim": 32, "iou_head_hidden_dim": 16, "num_attention_heads": 2}
    return t.SamModel(t.SamConfig(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=mask))


MODELS = {
    "text": lambda: t.BertForMaskedLM(t.BertConfig(**NARROW, vocab_size=120)),
    "text: several choices": lambda: t.BertForMultipleChoice(t.BertConfig(**NARROW, vocab_size=120)),
    "text: sequence classes": lambda: t.LlamaForSequenceClassification(t.LlamaConfig(**LLAMA)),
    "encoder and decoder": _t5,
    "image": lambda: t.ViTForImageClassification(t.ViTConfig(**SMALL_IMAGE)),
    "image: detection": lambda: t.YolosForObjectDetection(
        t.YolosConfig(**{**SMALL_IMAGE, "image_size": [32, 32]}, num_detection_tokens=4)
    ),
    "image: prompts": _sam,
    "clip": lambda: t.VideoMAEForVideoClassification(t.VideoMAEConfig(**SMALL_IMAGE, num_frames=4)),
    "sound: spectrogram": _whisper,
    "sound: wave": _wav2vec2,
    "image and text": _llava,
    "packed image and text": _qwen_vl,
    "document": lambda: t.LayoutLMForTokenClassification(t.LayoutLMConfig(**NARROW, vocab_size=120)),
    "table": lambda: t.TapasForQuestionAnswering(t.TapasConfig(**NARROW, vocab_size=120)),
    "regions": lambda: t.VisualBertForPreTraining(t.VisualBertConfig(**NARROW, vocab_size=99, visual_embedding_dim=8)),
    "entities": lambda: t.LukeModel(t.LukeConfig(**NARROW, vocab_size=120, entity_vocab_size=10, entity_emb_size=16)),
    "trajectory": lambda: t.DecisionTransformerModel(t.DecisionTransformerConfig(hidden_size=32, n_layer=2, n_head=4)),
    "time series: patches": lambda: t.PatchTSTForPrediction(
        t.PatchTSTConfig(d_model=16, num_hidden_layers=2, num_attention_heads=4, ffn_dim=16)
    ),
    "time series: lags": _informer,
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_real_forward_accepts_the_inputs(kind):
    torch.manual_seed(0)
    model = MODELS[kind]().eval()
    inputs = example_inputs(model)
    with torch.no_grad():
        outputs = model(**inputs)
    floats = [v for v in outputs.values() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    assert floats and all(v.numel() > 0 for v in floats)


def test_each_image_embedding_has_its_placeholder():
    model = _llava().eval()
    ids = example_inputs(model)["input_ids"]
    assert int((ids == 119).sum()) == 16  # (32 / 8) squared patches


def test_plain_tokens_avoid_ids_with_a_meaning():
    model = t.BertModel(t.BertConfig(**NARROW, vocab_size=10, pad_token_id=0, bos_token_id=1, eos_token_id=2))
    ids = example_inputs(model)["input_ids"]
    assert set(ids[0, :-1].tolist()) <= set(range(3, 10)) and int(ids[0, -1]) == 2


def test_inputs_are_the_same_under_the_same_seed():
    model = _qwen_vl().eval()
    made = []
    for _ in range(2):
        torch.manual_seed(0)
        made.append(example_inputs(model))
    assert made[0].keys() == made[1].keys()
    assert all(torch.equal(a, made[1][k]) for k, a in made[0].items() if isinstance(a, torch.Tensor))


def test_a_signature_that_nothing_is_known_for_is_a_lookup_error():
    class Odd(nn.Module):
        config = t.BertConfig(**NARROW)

        def forward(self, gadgets):
            return gadgets

    with pytest.raises(LookupError, match="Odd"):
        example_inputs(Odd())
