"""Sources list models without building them, and equal configurations share one config_hash."""

import pytest
import torch

from extract.sources import registry


@pytest.fixture(scope="module", params=["timm", "torchvision"])
def source(request):
    return registry.get(request.param)


def test_listing_is_stable_and_names_are_unique(source):
    first, second = list(source.list()), list(source.list())
    assert first == second
    assert len({r.name for r in first}) == len(first) > 100


def test_listing_builds_no_module(source, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a module was built while listing")

    monkeypatch.setattr(torch.nn.Module, "__init__", refuse)
    assert sum(1 for _ in source.list()) > 100


def test_every_ref_says_what_it_is(source):
    for ref in source.list():
        assert ref.source == source.name
        assert ref.family and ref.task and ref.modality and ref.revision and ref.license
        assert len(ref.config_hash) == 32


def test_a_pretrained_tag_that_changes_nothing_shares_its_architectures_configuration():
    timm = registry.get("timm")
    assert timm.ref("resnet18").config_hash == timm.ref("resnet18.a1_in1k").config_hash


def test_a_pretrained_tag_with_another_input_size_is_another_configuration():
    timm = registry.get("timm")
    small, large = timm.ref("vit_base_patch16_224.augreg_in21k"), timm.ref("vit_base_patch16_384.augreg_in21k_ft_in1k")
    assert small.config_hash != large.config_hash
    assert timm.ref("resnet18.fb_swsl_ig1b_ft_in1k").config_hash != timm.ref("resnet34").config_hash


def test_equal_configurations_build_modules_with_equal_parameters():
    timm = registry.get("timm")
    with torch.device("meta"):
        one = timm.build(timm.ref("resnet18"))
        two = timm.build(timm.ref("resnet18.a1_in1k"))
    assert [(n, p.shape) for n, p in one.named_parameters()] == [(n, p.shape) for n, p in two.named_parameters()]


def test_an_unknown_source_is_refused_with_the_nearest_name():
    with pytest.raises(registry.UnknownSource, match="did you mean 'timm'"):
        registry.get("tim")


def test_a_third_party_source_registers_without_touching_ours():
    @registry.register("toy-zoo")
    class Toy:
        def list(self):
            return iter(())

        def build(self, ref):
            return torch.nn.Identity()

        def inputs(self, ref, model):
            raise LookupError

    try:
        assert "toy-zoo" in registry.names()
        assert registry.get("toy-zoo").name == "toy-zoo"
    finally:
        registry._REGISTERED.pop("toy-zoo")
