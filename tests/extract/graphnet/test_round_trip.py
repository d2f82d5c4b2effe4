"""A graph that is exported in GraphNet's layout and imported again is the same graph."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from dedup.hashes import hashes
from extract.graphnet import program
from extract.graphnet.job import record_of
from tests.dedup.graphs import At, Builder, tangles
from tests.extract.graphnet.written import MLP, MLP_META, write
from warehouse.graph.constants import encode_tensor
from warehouse.graph.devices import on_device
from warehouse.graph.from_fx import from_graph_module
from warehouse.graph.inputs import draw, infer_recipes
from warehouse.graph.literals import dumps, encode_literal
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graph.to_fx import to_graph_module
from warehouse.graphnet.folder import write_graph, write_task
from warehouse.graphnet.text import model_text
from warehouse.storage import LocalStorage

torch_values = st.sampled_from(
    [
        *(torch.float32, torch.bfloat16, torch.int64, torch.strided, torch.channels_last, torch.Size([2, 3])),
        *(torch.device("cuda", 1), torch.device("cpu"), Ellipsis, torch.Size([])),
    ]
)
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.just(math.nan))
complexes = st.complex_numbers(allow_nan=False, allow_infinity=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
leaves = st.one_of(st.none(), st.booleans(), numbers, complexes, texts, torch_values)
literals = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(slice, st.integers(-9, 9), st.none(), st.integers(-9, 9)),
        st.dictionaries(texts, inner, max_size=2),
    ),
    max_leaves=8,
)


def again(record: GraphRecord, folder: Path) -> GraphRecord:
    write_graph(LocalStorage(folder), "sample", record, {"model_name": "tiny"})
    return record_of(os.fspath(folder / "sample"))


def told(record: GraphRecord) -> list[Any]:
    return [(n.op, n.target, json.loads(n.args), json.loads(n.kwargs), n.effect) for n in record.nodes]


@given(literals, literals, texts)
@settings(max_examples=150, deadline=None)
def test_every_literal_is_printed_so_that_it_is_read_back_exactly(first: Any, second: Any, name: str):
    build = Builder()
    x = build.input(device="cuda")
    data = [json.loads(dumps(encode_literal(v, lambda _: None))) for v in (first, second)]
    y = build.call("torch.nn.functional.pad", x, data[0], kwargs={"value": data[1]})
    record = build.output(y)
    record = record.with_nodes((replace(record.nodes[0], name=name), *record.nodes[1:]))
    assert told(program.parse(model_text(record).text).draft) == told(record)


@given(tangles(effects=True))
@settings(max_examples=60, deadline=None)
def test_wiring_and_order_of_effects_are_printed_so_that_they_are_read_back_exactly(record: GraphRecord):
    assert told(program.parse(model_text(record).text).draft) == told(record)


@given(tangles(most=10))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_round_trip_keeps_all_four_hashes(record: GraphRecord):
    with tempfile.TemporaryDirectory() as folder:
        assert hashes(again(record, Path(folder))) == hashes(record)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.relu(self.norm(self.conv(x)), inplace=True)
        y += y.mean((2, 3), keepdim=True)
        return nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")[:, ::2, ..., None]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.qkv = nn.Embedding(11, 8), nn.Linear(8, 24)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        q, k, v = self.qkv(self.table(ids)).chunk(3, dim=-1)
        scores = (q @ k.transpose(-1, -2)) * 8**-0.5
        scores = scores.masked_fill(mask[:, None] == 0, float("-inf"))
        scores[..., 0] = 0.25
        out = torch.softmax(scores, -1) @ v
        return out, {"last": out[:, -1], "steps": torch.arange(4, device=ids.device) + 1}


CASES = {
    "convolutions": (Convolutions, (torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),)),
    "attention": (Attention, (torch.randint(0, 11, (2, 4)), torch.ones(2, 4, dtype=torch.int64))),
}


def captured(case: str) -> GraphRecord:
    kind, inputs = CASES[case]
    found: list[GraphRecord] = []

    def backend(module: Any, _: Any) -> Any:
        found.append(infer_recipes(from_graph_module(module), {}))
        return module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(kind().eval(), backend=backend, fullgraph=True)(*inputs)
    return found[0]


@pytest.mark.parametrize("case", CASES)
def test_a_captured_graph_returns_as_it_was(case: str, tmp_path: Path):
    record = captured(case)
    returned = again(record, tmp_path)
    assert hashes(returned) == hashes(record)
    before, after = ([n for _, n in r.placeholders()] for r in (record, returned))
    assert [(n.name, n.role, n.shape, n.stride, n.recipe) for n in after] == [
        (n.name, n.role, n.shape, n.stride, n.recipe) for n in before
    ]


@pytest.mark.parametrize("case", CASES)
def test_the_exported_text_computes_what_the_graph_computes(case: str, tmp_path: Path):
    """The test runs the text as GraphNet's own loader does; nothing in the project does."""
    record = on_device(captured(case), "cpu")
    scope: dict[str, Any] = {}
    exec(model_text(record).text, scope)
    values = draw(record, seed=1)
    expected = to_graph_module(record)(*(v.clone() for v in values))
    found = scope["GraphModule"]()(*(v.clone() for v in values))
    for x, y in zip(torch.utils._pytree.tree_leaves(expected), torch.utils._pytree.tree_leaves(found), strict=True):
        assert torch.equal(x, y)


def test_an_imported_sample_survives_export_and_import(tmp_path: Path):
    record = record_of(os.fspath(write(tmp_path / "theirs", MLP, MLP_META)))
    returned = again(record, tmp_path)
    assert hashes(returned) == hashes(record)
    assert [n for _, n in returned.placeholders()] == [n for _, n in record.placeholders()]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_constants_return_bit_for_bit(dtype: str, tmp_path: Path):
    values = torch.tensor([[0.1, -2.0], [math.inf, 3e-5]])
    tensor = (values if "int" not in dtype else values.nan_to_num(posinf=7.0)).to(getattr(torch, dtype))
    build = Builder()
    x = build.input(shape=(2, 2), dtype=dtype, device="cpu")
    build.rows.append(Node("constant", args=encode_tensor(tensor), dtype=dtype, shape=(2, 2), device="cpu"))
    y = build.call("torch.cat", [x, At(1)], shape=(4, 2), dtype=dtype)
    record = build.output(y)
    assert hashes(again(record, tmp_path)).graph_hash == hashes(record).graph_hash


def test_what_the_layout_cannot_say_is_refused_with_a_class(tmp_path: Path):
    symbolic = Builder()
    x = symbolic.input(expr="[s0, 3]")
    with pytest.raises(RecordError, match="symbolic") as caught:
        model_text(symbolic.output(x))
    assert caught.value.kind == "graph_not_exportable"


def test_a_task_folder_lists_its_graphs_and_bears_passbenchs_id(tmp_path: Path):
    import hashlib

    record = record_of(os.fspath(write(tmp_path / "theirs")))
    identity = write_task(tmp_path / "task", {"b": (record, {}), "a/../x": (record, {})})
    assert identity == hashlib.sha256(b"a/../x\nb").hexdigest()
    listed = (tmp_path / "task" / "graph_list.txt").read_text().split()
    assert listed == ["graphs/b", "graphs/a_.._x"]
    assert all((tmp_path / "task" / path / "graph_net.json").is_file() for path in listed)
    assert (tmp_path / "task" / "pass_dir").is_dir()
