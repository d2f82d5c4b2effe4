"""The transformers source lists pairs without building, collapses equal configurations and cuts depth only."""

import subprocess
import sys

import pytest
import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from extract.sources import registry, transformers_configs
from extract.sources.transformers_configs import parts


@pytest.fixture(scope="module")
def source():
    return registry.get("transformers")


def test_names_are_many_unique_and_in_a_stable_order(source):
    names = list(source.names())
    assert names == list(source.names())
    assert len(set(names)) == len(names) > 1000
    assert {"bert/BertModel", "bert/BertForMaskedLM", "whisper/WhisperForConditionalGeneration"} <= set(names)


def test_names_import_no_modelling_file():
    script = (
        "import sys; from extract.sources import registry; list(registry.get('transformers').names());"
        "models = [m for m in sys.modules if m.startswith('transformers.models.')];"
        "print([m for m in models if '.modeling_' in m and '.auto.' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_making_a_ref_builds_no_module(source, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a module was built")

    monkeypatch.setattr(torch.nn.Module, "__init__", refuse)
    assert source.ref("t5/T5ForConditionalGeneration").family == "t5"


@pytest.mark.parametrize(
    ("name", "task", "modality"),
    [
        ("bert/BertForMaskedLM", "masked-lm", "text"),
        ("gpt2/GPT2LMHeadModel", "causal-lm", "text"),
        ("vit/ViTForImageClassification", "image-classification", "vision"),
        ("vit/ViTModel", "image", "vision"),
        ("videomae/VideoMAEForVideoClassification", "video-classification", "video"),
        ("wav2vec2/Wav2Vec2ForCTC", "ctc", "audio"),
        ("whisper/WhisperModel", "features", "audio"),
        ("llava/LlavaForConditionalGeneration", "image-text-to-text", "multimodal"),
        ("qwen2_5_vl/Qwen2_5_VLModel", "features", "multimodal"),
        ("patchtst/PatchTSTForClassification", "time-series-classification", "time-series"),
    ],
)
def test_a_ref_says_task_and_modality(source, name, task, modality):
    ref = source.ref(name)
    assert (ref.task, ref.modality) == (task, modality)
    assert ref.license == "apache-2.0" and ref.revision.startswith("transformers ")


def test_two_names_of_one_configuration_and_class_share_a_hash(source):
    assert source.ref("gpt-sw3/GPT2LMHeadModel").config_hash == source.ref("gpt2/GPT2LMHeadModel").config_hash


def test_two_heads_or_two_types_do_not_share_a_hash(source):
    names = ("bert/BertModel", "bert/BertForMaskedLM", "roberta/RobertaModel")
    assert len({source.ref(name).config_hash for name in names}) == 3


@pytest.mark.parametrize(
    "name",
    [
        "bert/BertForMaskedLm",
        "nosuch",
        "",
        "../../etc/passwd",
        "bert/__class__",
        "bert/BertModel/x",
        "'; DROP TABLE--/x",
    ],
)
def test_an_unknown_or_hostile_name_is_a_lookup_error(source, name):
    with pytest.raises(LookupError):
        source.ref(name)


def test_the_error_names_the_nearest_name(source):
    with pytest.raises(LookupError, match="bert/BertForMaskedLM"):
        source.ref("bert/BertForMaskedLm")


def test_an_unknown_model_type_is_a_lookup_error():
    with pytest.raises(LookupError, match="no model type 'nosuch'"):
        transformers_configs.shrunk("nosuch")


#: Numbers that say how wide a model is.
WIDTHS = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "vocab_size",
    "d_model",
    "num_experts",
    "image_size",
)
TYPES = [
    "bert",
    "llama",
    "gemma3_text",
    "mixtral",
    "qwen3_next",
    "t5",
    "whisper",
    "swin",
    "dinov2",
    "clip",
    "qwen2_5_vl",
]


@pytest.mark.parametrize("model_type", TYPES)
def test_only_depth_is_cut(model_type):
    cut, whole = transformers_configs.shrunk(model_type), CONFIG_MAPPING[model_type]()
    for a, b in zip(parts(cut), parts(whole), strict=True):
        for width in WIDTHS:
            assert getattr(a, width, None) == getattr(b, width, None), width
        assert getattr(a, "num_hidden_layers", 1) <= 4


@pytest.mark.parametrize("model_type", ["gemma3_text", "qwen3_next", "jamba", "modernbert", "zamba2", "gpt_oss"])
def test_every_kind_of_layer_stays(model_type):
    def kinds(config):
        return set(config.layer_types)

    cut, whole = transformers_configs.shrunk(model_type), CONFIG_MAPPING[model_type]()
    assert kinds(cut) == kinds(whole)
    assert len(cut.layer_types) == cut.num_hidden_layers < whole.num_hidden_layers


def test_lists_with_one_entry_a_layer_are_cut_alike():
    config = transformers_configs.shrunk("llama4_text")
    assert len(config.no_rope_layers) == len(config.layer_types) == config.num_hidden_layers
    assert set(config.no_rope_layers) == {0, 1}
    assert config.moe_layers and max(config.moe_layers) < config.num_hidden_layers


def test_stages_stay_and_their_depths_are_cut():
    config = transformers_configs.shrunk("swin")
    assert len(config.depths) == len(config.num_heads) == config.num_layers == 4
    assert max(config.depths) == 2


def test_a_dense_and_a_sparse_layer_stay():
    config = transformers_configs.shrunk("deepseek_v3")
    assert (config.first_k_dense_replace, config.num_hidden_layers) == (1, 2)


def test_as_many_layers_stay_as_a_backbone_reads_out():
    backbone = transformers_configs.shrunk("dpt")
    assert max(backbone.backbone_out_indices) < backbone.num_hidden_layers
    assert len(set(backbone.backbone_out_indices)) == 4


def test_no_operator_private_to_the_library_is_asked_for():
    for part in parts(transformers_configs.shrunk("qwen3_vl_moe")):
        assert part._experts_implementation == "batched_mm"


def test_a_padding_token_is_set_for_sequence_classifiers():
    assert transformers_configs.shrunk("llama").pad_token_id == 0
