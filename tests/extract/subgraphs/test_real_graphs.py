"""Subgraphs of real models: each runs alone and gives the bits it gave in its parent."""

from __future__ import annotations

import pytest
import torch

from dedup.hashes import hashes
from extract.capture import capture
from extract.model import Variant
from extract.sources import registry
from extract.subgraphs.carve import Parent
from extract.subgraphs.fusible import barriers, candidates, computes, sole_ops
from extract.subgraphs.splice import runs_as_in_parent
from extract.subgraphs.typical import typical
from warehouse.graph.devices import on_device
from warehouse.graph.inputs import draw
from warehouse.graph.to_fx import to_graph_module

MODELS = [
    ("timm", "resnet18", "default"),
    ("timm", "vit_tiny_patch16_224", "default"),
    pytest.param("timm", "swin_tiny_patch4_window7_224", "symbolic+cpu", marks=pytest.mark.slow),
    pytest.param("timm", "mobilenetv3_small_100", "train", marks=pytest.mark.slow),
    ("timm", "test_vit", "symbolic+cpu"),
    ("timm", "convnext_atto", "bfloat16"),
    ("torchvision", "shufflenet_v2_x0_5", "default"),
]


@pytest.mark.parametrize(("source", "name", "variant"), MODELS)
def test_every_subgraph_of_a_real_model_agrees_with_its_parent(source, name, variant):
    zoo = registry.get(source)
    found = capture(zoo, zoo.ref(name), Variant.parse(variant))
    assert found.failure is None and found.graphs
    for graph in found.graphs:
        fusible = candidates(Parent.of(graph.record))
        mined = [s for sequence in typical([graph.record]) for _, s in sequence.found]
        pieces = [*fusible, *sole_ops(graph.record), *mined]
        assert fusible and not any(runs_as_in_parent(graph.record, pieces))
        with torch.no_grad():
            for piece in fusible:
                outputs = to_graph_module(on_device(piece.record, "cpu"))(*draw(piece.record, seed=0))
                assert all(torch.isfinite(o).all() for o in outputs if o.is_floating_point())


def test_every_computing_row_of_a_transformer_is_covered_and_its_blocks_dedup():
    zoo = registry.get("timm")
    record = capture(zoo, zoo.ref("vit_tiny_patch16_224"), Variant()).graphs[0].record
    parent = Parent.of(record)
    pieces = candidates(parent)
    light = {r for r, n in enumerate(parent.record.nodes) if computes(n)} - barriers(parent)
    assert light <= {r for p in pieces for r in p.rows}
    assert len({hashes(p.record).structure_hash for p in pieces}) <= len(pieces) // 5
