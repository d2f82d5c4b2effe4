"""Inputs drawn for a stored graph are valid, varied and the same every time."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from warehouse.graph.from_fx import from_graph_module
from warehouse.graph.inputs import draw, infer_recipes
from warehouse.graph.record import GraphRecord, Node
from warehouse.graph.to_fx import to_graph_module


def record_of(function, *args, dynamic=False) -> GraphRecord:
    found = []

    def backend(module, example_inputs):
        found.append(from_graph_module(module))
        return module.forward

    torch._dynamo.reset()
    torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(*args)
    (record,) = found
    return record


def recipes(record: GraphRecord, observed=None) -> dict[str, dict]:
    return {n.name: json.loads(n.recipe) for _, n in infer_recipes(record, observed).placeholders()}


IDS = torch.zeros(2, 3, dtype=torch.int64)
TABLE = torch.randn(7, 4)
INDEXING = {
    "embedding": (lambda ids: F.embedding(ids, TABLE), 0, 7),
    "embedding after a view and a cast": (lambda ids: F.embedding(ids.view(-1).int().unsqueeze(0), TABLE), 0, 7),
    "embedding after adding": (lambda ids: F.embedding(ids + 2, TABLE), -2, 5),
    "embedding after subtracting from": (lambda ids: F.embedding(6 - ids, TABLE), 0, 7),
    "embedding after multiplying": (lambda ids: F.embedding(ids * 3, TABLE), 0, 3),
    "embedding after dividing": (lambda ids: F.embedding(ids // 2, TABLE), 0, 14),
    "one hot": (lambda ids: F.one_hot(ids, 5), 0, 5),
    "gather": (lambda ids: torch.gather(TABLE, 1, ids), 0, 4),
    "scatter": (lambda ids: torch.zeros(2, 6).scatter_(-1, ids, 1.0), 0, 6),
    "index_select": (lambda ids: TABLE.index_select(0, ids.flatten()), 0, 7),
    "row of a table": (lambda ids: TABLE[ids], 0, 7),
    "column of a table": (lambda ids: TABLE[:, ids], 0, 4),
    "column after an ellipsis": (lambda ids: TABLE[..., ids], 0, 4),
    "both rows and columns": (lambda ids: TABLE[ids, ids], 0, 4),
    "cross entropy target": (lambda ids: F.cross_entropy(TABLE[:6], ids.view(-1)), 0, 4),
    "the stricter of two": (lambda ids: F.one_hot(ids, 9).sum() + F.embedding(ids, TABLE).sum(), 0, 7),
}


@pytest.mark.parametrize("case", INDEXING)
def test_indices_stay_inside_what_they_index(case):
    function, low, high = INDEXING[case]
    record = record_of(function, IDS)
    assert recipes(record)["ids"] == {"kind": "index", "low": low, "high": high}
    module = to_graph_module(record)
    drawn = [draw(record, seed) for seed in range(20)]
    for values in drawn:
        module(*values)  # raises when an index is out of range
    slot = next(n.slot for _, n in record.placeholders() if n.name == "ids")
    assert {int(v) for values in drawn for v in values[slot].flatten()} == set(range(low, high))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.norm = nn.LayerNorm(8)
        self.fc = nn.Linear(8, 8)

    def forward(self, pixels):
        x = self.bn(self.conv(pixels)).mean((2, 3))
        return self.fc(self.norm(x))


def test_parameters_and_buffers_get_values_that_suit_their_role():
    found = recipes(record_of(Block().eval(), torch.randn(1, 3, 8, 8)))
    assert found["bn.running_var"]["kind"] == found["bn.weight"]["kind"] == found["norm.weight"]["kind"] == "positive"
    assert found["bn.running_mean"]["kind"] == "normal"
    assert found["conv.weight"] == {"kind": "normal", "mean": 0.0, "std": pytest.approx(27**-0.5)}
    assert found["fc.weight"]["std"] == pytest.approx(8**-0.5)
    assert found["pixels"] == {"kind": "normal", "mean": 0.0, "std": 1.0}


DOMAINS = {
    "logarithm": (lambda x: x.log(), "positive"),
    "square root after a cast": (lambda x: x.double().sqrt(), "positive"),
    "divisor": (lambda x: 1.0 / x, "positive"),
    "bernoulli": (lambda x: torch.bernoulli(x), "probability"),
    "loss of probabilities": (lambda x: F.binary_cross_entropy(x, torch.ones(2, 4)), "probability"),
    "anything": (lambda x: x + 1, "normal"),
}


@pytest.mark.parametrize("case", DOMAINS)
def test_floats_lie_in_the_domain_of_what_reads_them(case):
    function, kind = DOMAINS[case]
    record = record_of(function, torch.full((2, 4), 0.5))
    assert recipes(record)["x"]["kind"] == kind
    for seed in range(5):
        assert all(torch.isfinite(out).all() for out in to_graph_module(record)(*draw(record, seed)))


def test_attention_masks_leave_something_to_attend_to():
    def attend(q, mask):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    q = torch.randn(1, 2, 6, 4)
    for mask in (torch.ones(1, 1, 6, 6, dtype=torch.bool), torch.zeros(1, 1, 6, 6)):
        record = record_of(attend, q, mask)
        assert recipes(record)["mask"]["form"] == ("bool" if mask.dtype == torch.bool else "additive")
        for seed in range(20):
            values = draw(record, seed)
            drawn = next(v for v, (_, n) in zip(values, record.placeholders(), strict=True) if n.name == "mask")
            assert len(drawn.unique()) == 2 and torch.isfinite(to_graph_module(record)(*values)[0]).all()


def holder(dtype: str, **columns: object) -> GraphRecord:
    node = Node("placeholder", slot=0, role="input", name="x", dtype=dtype, shape=(4, 6), device="cpu")
    output = Node("output", value="none", args='[["%1"]]')
    return GraphRecord((replace(node, **columns), output))  # type: ignore[arg-type]


def test_boxes_keep_their_corners_in_order():
    def embed(box):
        return F.embedding(box[..., 2] - box[..., 0], TABLE) + F.embedding(box[..., 3], TABLE)

    record = record_of(embed, torch.zeros(2, 3, 4, dtype=torch.int64))
    assert recipes(record)["box"] == {"kind": "index", "low": 0, "high": 7, "sorted": True}
    for seed in range(20):
        to_graph_module(record)(*draw(record, seed))


OBSERVED = {
    "positions": ("int64", {"min": 3, "max": 8, "is_arange": True}, {"kind": "arange", "start": 3}),
    "tokens": ("int64", {"min": 5, "max": 9, "is_arange": False}, {"kind": "index", "low": 5, "high": 10}),
    "few": (
        "int64",
        {"min": 1, "max": 24, "values": list(range(1, 25))},
        {"kind": "values", "values": list(range(1, 25))},
    ),
    "one number": ("int64", {"min": 4, "max": 4, "is_arange": False}, {"kind": "constant", "value": 4}),
    "all on": ("bool", {"min": 1, "max": 1}, {"kind": "constant", "value": 1}),
    "on and off": ("bool", {"min": 0, "max": 1}, {"kind": "mask", "form": "bool"}),
    "ones": ("float32", {"min": 1, "max": 1}, {"kind": "constant", "value": 1.0}),
    "additive mask": ("float32", {"min": -3.4e38, "max": 0}, {"kind": "mask", "form": "additive"}),
    "image": ("float32", {"min": -2, "max": 3}, {"kind": "normal", "mean": 0.5, "std": 2.0, "low": -2.0, "high": 3.0}),
}


@pytest.mark.parametrize("case", OBSERVED)
def test_what_capture_saw_wins(case):
    dtype, seen, expected = OBSERVED[case]
    record = holder(dtype)
    assert recipes(record, {0: {"mean": 0.5, "std": 2.0, **seen}})["x"] == expected
    (value,) = draw(infer_recipes(record, {0: {"mean": 0.5, "std": 2.0, **seen}}), seed=0)
    assert value.min() >= max(seen["min"], -1e4) and value.max() <= seen["max"]
    if seen.get("is_arange"):
        assert torch.equal(value, torch.arange(3, 9).expand(4, 6))


@pytest.mark.parametrize("stride", [None, (1, 4), (0, 1), (1, 1), (20, 2), (6, 0)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_strides_are_those_of_the_record(stride, dtype):
    (value,) = draw(holder(dtype, stride=stride), seed=0)
    assert value.shape == (4, 6) and value.stride() == (stride or (6, 1)) and str(value.dtype) == f"torch.{dtype}"


def test_the_seed_alone_decides_and_every_slot_has_its_own_values():
    record = record_of(lambda a, b: a + b, torch.randn(3, 3), torch.randn(3, 3))
    once, again, other = draw(record, 1), draw(record, 1), draw(record, 2)
    assert all(torch.equal(x, y) for x, y in zip(once, again, strict=True))
    assert not torch.equal(once[0], other[0]) and not torch.equal(once[0], once[1])


def test_another_dtype_gives_the_same_values_rounded():
    record = record_of(lambda a, ids: a[ids], torch.randn(5, 3), torch.tensor([1, 2]))
    full, half = draw(record, 0), draw(record, 0, dtype_override=torch.float16)
    for one, two in zip(full, half, strict=True):
        assert two.dtype == (torch.float16 if one.is_floating_point() else one.dtype)
        assert torch.equal(one.to(two.dtype), two)


def test_symbols_take_the_size_that_was_traced():
    record = record_of(lambda x: x.reshape(x.shape[0] * x.shape[1], -1), torch.randn(3, 5, 2), dynamic=True)
    assert sorted(r["value"] for r in recipes(record).values() if r["kind"] == "symbol") == [2, 3, 5]
    (out,) = to_graph_module(record)(*draw(record, 0))
    assert out.shape == (15, 2)
