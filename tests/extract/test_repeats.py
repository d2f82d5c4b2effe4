"""Copying a repeated block's nodes promises the graph that tracing it again would give, to the last field."""

import contextlib

import pytest

import extract.capture
from extract.calls import Call
from extract.capture import capture
from extract.model import Variant
from extract.sources import registry
from tests.extract.repeating import Repeating

SOURCE = Repeating()
COPIED = {"alike", "other_numbers", "one_block_often", "tied_weights", "in_place", "many_results", "shared_argument"}
REAL = [
    "resnet18",
    "vit_tiny_patch16_224",
    "swin_tiny_patch4_window7_224",
    "convnext_atto",
    "levit_128s",
    "densenet121",
]


@pytest.fixture
def copies(monkeypatch):
    """How many calls were copied so far."""
    made = []
    copied = Call.copied

    def counted(self, *args):
        variable = copied(self, *args)
        made.append(self)
        return variable

    monkeypatch.setattr(Call, "copied", counted)
    return made


def traced_throughout(monkeypatch, source, ref, variant):
    with monkeypatch.context() as patch:
        patch.setattr(extract.capture, "repeats_copied", contextlib.nullcontext)
        return capture(source, ref, variant)


def assert_same(found, wanted):
    assert found.failure == wanted.failure
    assert found.breaks == wanted.breaks
    assert [g.record for g in found.graphs] == [g.record for g in wanted.graphs]


@pytest.mark.parametrize("name", Repeating.modules)
def test_copied_blocks_are_what_tracing_them_gives(name, monkeypatch, copies):
    found = capture(SOURCE, SOURCE.ref(name), Variant())
    assert found.failure is None, found.failure
    assert not (name in COPIED and not copies)
    assert_same(found, traced_throughout(monkeypatch, SOURCE, SOURCE.ref(name), Variant()))


@pytest.mark.parametrize("name", REAL)
def test_real_models_are_captured_as_if_traced_throughout(name, monkeypatch, copies):
    source = registry.get("timm")
    found = capture(source, source.ref(name), Variant())
    assert found.failure is None, found.failure
    assert copies or name == "levit_128s"  # its blocks keep caches
    assert_same(found, traced_throughout(monkeypatch, source, source.ref(name), Variant()))


@pytest.mark.parametrize("variant", ["train", "symbolic"])
def test_nothing_is_copied_where_gradients_or_symbolic_sizes_differ_from_call_to_call(variant, copies):
    found = capture(SOURCE, SOURCE.ref("alike"), Variant.parse(variant))
    assert found.failure is None and not copies


def test_a_node_budget_counts_copied_nodes_too():
    found = capture(SOURCE, SOURCE.ref("alike"), Variant(), node_budget=30)
    assert found.failure is not None and found.failure.kind == "node_budget"
