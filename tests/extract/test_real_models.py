"""Real models of every source: stored graphs compute what the module computes, on the module's own weights."""

from importlib import metadata

import pytest
import torch

from dedup.hashes import canonical_order
from extract.capture import capture
from extract.model import Variant
from extract.sources import registry
from extract.verify import outputs_equal
from warehouse.graph.devices import on_device
from warehouse.graph.inputs import draw
from warehouse.graph.to_fx import to_graph_module

MODELS = [
    ("timm", "resnet18", "default"),
    ("timm", "vit_tiny_patch16_224", "default"),
    ("timm", "swin_tiny_patch4_window7_224", "default"),
    ("timm", "mobilenetv3_small_100", "train"),
    ("timm", "convnext_atto", "bfloat16"),
    ("torchvision", "shufflenet_v2_x0_5", "default"),
    ("torchvision", "lraspp_mobilenet_v3_large", "default"),
    ("transformers", "distilbert/DistilBertModel", "default"),
    ("transformers", "gpt2/GPT2LMHeadModel", "default"),
    ("transformers", "vit/ViTForImageClassification", "default"),
    ("transformers", "albert/AlbertModel", "train"),
]


@pytest.mark.parametrize(("source", "name", "variant"), MODELS)
def test_stored_graphs_give_a_real_models_outputs(source, name, variant):
    zoo = registry.get(source)
    found = capture(zoo, zoo.ref(name), Variant.parse(variant))
    assert found.failure is None, found.failure
    assert outputs_equal(zoo, found)


def test_graphs_with_one_graph_hash_give_equal_outputs_on_equal_inputs():
    """Two architectures whose graphs hash alike, fed the same values by canonical position."""
    zoo = registry.get("timm")
    one, two = (
        capture(zoo, zoo.ref(n), Variant()).graphs[0] for n in ("vit_tiny_patch16_224", "deit_tiny_patch16_224")
    )
    assert one.graph_hash == two.graph_hash
    values = dict(zip((row for row, _ in one.record.placeholders()), draw(one.record, seed=0), strict=True))
    by_position = {row: values[row] for row in values}
    match = dict(zip(canonical_order(two.record), canonical_order(one.record), strict=True))
    inputs = [by_position[match[row]] for row, _ in two.record.placeholders()]
    with torch.no_grad():
        first = to_graph_module(on_device(one.record, "cpu"))(*draw(one.record, seed=0))
        second = to_graph_module(on_device(two.record, "cpu"))(*inputs)
    assert all(torch.equal(a, b) and a.std() > 0 for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", ["resnet18", "swin_tiny_patch4_window7_224"])
def test_symbolic_graphs_rebuild_and_run(name):
    zoo = registry.get("timm")
    found = capture(zoo, zoo.ref(name), Variant.parse("symbolic+cpu"))
    assert found.failure is None, found.failure
    record = found.graphs[0].record
    values = draw(record, seed=0)
    with torch.no_grad():
        (out,) = to_graph_module(record)(*values)
    assert torch.isfinite(out).all()


def test_a_mixture_of_experts_holds_no_operator_private_to_its_library():
    zoo = registry.get("transformers")
    found = capture(zoo, zoo.ref("mixtral/MixtralForCausalLM"), Variant())
    assert found.failure is None
    targets = {t for g in found.graphs for _, graph in g.record.walk() for t in graph.operators()}
    assert not any("transformers" in t for t in targets)


@pytest.mark.skipif(
    tuple(int(n) for n in metadata.version("transformers").split(".")[:2]) < (5, 20),
    reason="older releases of transformers unroll the scan on either device",
)
def test_a_model_traced_for_cuda_needs_none_and_differs_from_the_cpu_where_the_device_decides():
    zoo = registry.get("transformers")
    cuda = capture(zoo, zoo.ref("mamba/MambaModel"), Variant())
    assert cuda.failure is None
    assert {n.device for g in cuda.graphs for n in g.record.nodes if n.device} == {"cuda"}
    assert any("associative_scan" in t for g in cuda.graphs for t in g.record.operators())
