"""A sample's text becomes the graph that it states: operators, literals, wiring, sizes, value recipes."""

from __future__ import annotations

import json

import pytest
import torch

from dedup.hashes import hashes
from extract.graphnet import metas, program
from extract.graphnet.complete import RunError, complete
from extract.graphnet.problem import SampleError
from tests.extract.graphnet.written import MLP, MLP_META, forward, meta
from warehouse.graph.devices import on_device
from warehouse.graph.inputs import draw
from warehouse.graph.record import GraphRecord
from warehouse.graph.to_fx import to_graph_module


def record_of(model: str, described: str) -> GraphRecord:
    return complete(program.parse(model), metas.parse(described, "weight_meta.py"))


@pytest.fixture(scope="module")
def mlp() -> GraphRecord:
    return record_of(MLP, MLP_META)


def test_operators_are_stored_under_their_public_names(mlp: GraphRecord):
    assert mlp.operators() == [
        "torch.nn.functional.linear",
        "torch.Tensor.item",
        "torch.nn.functional.layer_norm",
        "torch.Tensor.transpose",
        "operator.getitem",
        "operator.iadd",
        "torch.arange",
        "operator.gt",
        "torch.Tensor.masked_fill",
    ]


def test_sizes_and_dtypes_of_every_value_are_found(mlp: GraphRecord):
    known = {n.target.rpartition(".")[2]: (n.dtype, n.shape) for n in mlp.nodes if n.op.startswith("call_")}
    assert known["linear"] == ("float32", (8, 8))
    assert known["getitem"] == ("float32", (8,))
    assert known["arange"] == ("int64", (8,))
    assert known["gt"] == ("bool", (8,))


def test_arguments_get_the_path_and_role_of_a_capture(mlp: GraphRecord):
    assert [(n.name, n.role, n.slot) for _, n in mlp.placeholders()] == [
        ("fc1.weight", "parameter", 0),
        ("fc1.bias", "parameter", 1),
        ("x", "input", 2),
        ("norm_eps", "input", 3),
        ("s0", "symbol", 4),
    ]


def test_metas_become_value_recipes(mlp: GraphRecord):
    weight, bias, x, eps, s0 = (json.loads(n.recipe or "") for _, n in mlp.placeholders())
    assert weight == {"kind": "normal", "mean": 0.01, "std": 0.25}
    assert bias == {"kind": "values", "values": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -0.8]}
    assert x == {"kind": "normal", "mean": 0.5, "std": 0.29, "low": 0.0, "high": 1.0}
    assert eps == {"kind": "constant", "value": 1e-05}
    assert s0 == {"kind": "symbol", "value": 4}


def test_an_imported_graph_runs_and_computes_what_its_text_says(mlp: GraphRecord):
    here = on_device(mlp, "cpu")
    values = draw(here, seed=3)
    weight, bias, x, eps, _ = values
    kept, normed = to_graph_module(here)(*(v.clone() if isinstance(v, torch.Tensor) else v for v in values))
    expected = torch.nn.functional.layer_norm(torch.nn.functional.linear(x, weight, bias), (8,), eps=eps.item())
    # `scores += 1` writes through the view into what the transpose shares with `normed`.
    expected.transpose(0, 1)[:, 0].add_(1)
    assert torch.equal(normed, expected)
    assert torch.equal(kept, torch.full((8,), 0.5))


def test_renaming_changes_no_hash_and_another_literal_does(mlp: GraphRecord):
    renamed = record_of(MLP.replace("scores", "points").replace("normed", "y"), MLP_META)
    assert hashes(renamed) == hashes(mlp)
    assert hashes(record_of(MLP.replace("> -3", "> -4"), MLP_META)).graph_hash != hashes(mlp).graph_hash


@pytest.mark.parametrize(
    ("body", "target"),
    [
        ("y = -x\nreturn (y,)", "operator.neg"),
        ("y = x @ x\nreturn (y,)", "operator.matmul"),
        ("y = x.T\nreturn (y,)", "torch.Tensor.T"),
        ("y = getattr(x, 'shape')\nreturn (y,)", "torch.Tensor.shape"),
        ("y = 2 ** x\nreturn (y,)", "operator.pow"),
        ("y = x[..., None]\nreturn (y,)", "operator.getitem"),
        ("y = x[Ellipsis, 0:2]\nreturn (y,)", "operator.getitem"),
        ("y = torch.functional.einsum('ij,jk->ik', x, x)\nreturn (y,)", "torch.einsum"),
        ("y = torch._C._fft.fft_rfft(x)\nreturn (y,)", "torch.fft.rfft"),
        ("y = torch.multiply(x, 2)\nreturn (y,)", "torch.mul"),
        ("y = torch.ops.aten.sym_size.int(x, 0)\nreturn (y,)", "torch.ops.aten.sym_size"),
        ("y = x.__eq__(x)\nreturn (y,)", "torch.Tensor.eq"),
        ("x[0] = 1.0; setitem = x; x = None\nreturn (setitem,)", "operator.setitem"),
        ("a, b = x.unbind(0)\nreturn (a, b)", "torch.Tensor.unbind"),
        ("y = x.to(dtype=torch.float16, memory_format=torch.channels_last)\nreturn (y,)", "torch.Tensor.to"),
    ],
)
def test_the_forms_in_which_fx_prints_a_call_are_read(body: str, target: str):
    shape = (2, 2, 2, 2) if "channels_last" in body else (2, 2)
    record = record_of(forward(body), meta("x", *shape))
    assert record.operators()[0] == target


def test_a_name_that_was_cleared_is_not_read():
    with pytest.raises(SampleError, match="stands for nothing") as caught:
        program.parse(forward("y = x + 1\ny = None\nreturn (y,)"))
    assert (caught.value.kind, caught.value.place) == ("syntax_unsupported", "model.py:7")


def test_an_unknown_operator_names_its_line():
    with pytest.raises(SampleError) as caught:
        program.parse(forward("y = x + 1\nz = torch.from_file('/etc/passwd')\nreturn (z,)"))
    assert (caught.value.kind, caught.value.place) == ("operator_not_listed", "model.py:6")


def test_an_operator_that_refuses_its_operands_names_its_line():
    with pytest.raises(RunError) as caught:
        record_of(forward("y = x + 1\nz = torch.matmul(y, y)\nreturn (z,)"), meta("x", 2, 3))
    assert caught.value.place == "model.py:6"


def test_an_argument_without_a_meta_is_named():
    with pytest.raises(SampleError, match="argument x is described nowhere"):
        record_of(forward("return (x,)"), meta("y", 2))
