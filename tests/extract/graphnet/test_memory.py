"""What is remembered of calls never changes what a graph is found to be."""

from __future__ import annotations

import pytest

from extract.graphnet import complete as completing
from extract.graphnet import memory, metas, program
from tests.extract.graphnet.written import MLP, MLP_META, forward, meta
from warehouse.graph.record import GraphRecord

LINEAR = """
first = torch._C._nn.linear(x, w)
enter = torch.amp.autocast_mode._enter_autocast('cuda', torch.bfloat16, True, None)
inside = torch._C._nn.linear(x, w)
exit = torch.amp.autocast_mode._exit_autocast(enter)
after = torch._C._nn.linear(x, w)
return (first, inside, after)
"""
RESHAPED = """
y = x.contiguous()
z = x.transpose_(0, 1)
u = y.contiguous()
return (u, z)
"""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> memory.Memory:
    made = memory.Memory()
    monkeypatch.setattr(completing, "_memory", made)
    return made


def record_of(model: str, described: str) -> GraphRecord:
    return completing.complete(program.parse(model), metas.parse(described, "weight_meta.py"))


def results(record: GraphRecord) -> list[tuple[str, str | None, tuple[int, ...] | None, tuple[int, ...] | None]]:
    return [(n.target, n.dtype, n.shape, n.stride) for n in record.nodes if n.op.startswith("call_")]


def test_a_second_reading_remembers_and_finds_the_same(fresh: memory.Memory, monkeypatch: pytest.MonkeyPatch):
    first = record_of(MLP, MLP_META)
    assert fresh.known
    calls = []
    called = completing._called
    monkeypatch.setattr(
        completing, "_called", lambda node, *rest: calls.append(str(node.target)) or called(node, *rest)
    )
    assert record_of(MLP, MLP_META) == first
    assert not any("linear" in name for name in calls), "it was run again"
    assert any("iadd" in name for name in calls), "a call that writes is always run"


def test_operands_count_in_their_places(fresh: memory.Memory):
    body = "a = torch.cat([x, x, y])\nb = torch.cat([x, y, y])\nc = torch.cat([y, x, x])\nreturn (a, b, c)"
    record = record_of(forward(body, "x: torch.Tensor, y: torch.Tensor"), meta("x", 2, 3) + meta("y", 5, 3))
    assert [shape for _, _, shape, _ in results(record)] == [(9, 3), (12, 3), (9, 3)]


def test_dtypes_strides_and_literals_tell_calls_apart(fresh: memory.Memory):
    body = (
        "a = x.sum(0)\nb = x.sum(1)\nc = x.t()\nd = c.contiguous()\ne = x.contiguous()\nf = y.sum(0)\n"
        "return (a, b, d, e, f)"
    )
    record = record_of(
        forward(body, "x: torch.Tensor, y: torch.Tensor"), meta("x", 2, 3) + meta("y", 2, 3, dtype="float16")
    )
    found = results(record)
    assert [(dtype, shape) for _, dtype, shape, _ in found if shape is not None and len(shape) == 1] == [
        ("float32", (3,)),
        ("float32", (2,)),
        ("float16", (3,)),
    ]
    assert [stride for name, _, _, stride in found if name.endswith((".t", ".contiguous"))] == [(1, 3), None, None]


def test_autocast_changes_what_a_remembered_call_would_yield(fresh: memory.Memory):
    record_of(forward("y = torch._C._nn.linear(x, w)\nreturn (y,)", "x, w"), meta("x", 2, 3) + meta("w", 4, 3))
    record = record_of(forward(LINEAR, "x, w"), meta("x", 2, 3) + meta("w", 4, 3))
    assert [dtype for name, dtype, *_ in results(record) if name.endswith("linear")] == [
        "float32",
        "bfloat16",
        "float32",
    ]


def test_two_names_of_one_tensor_stay_one_where_it_is_reshaped_in_place(fresh: memory.Memory):
    record = record_of(forward(RESHAPED), meta("x", 2, 3))
    assert {name: shape for name, _, shape, _ in results(record)}["torch.Tensor.transpose_"] == (3, 2)
    assert not fresh.known


def test_a_value_read_from_a_tensor_is_never_remembered(fresh: memory.Memory):
    body = "size = n.item()\ny = torch.zeros(size)\nreturn (y,)"
    for size in (3, 5):
        record = record_of(forward(body, "n"), meta("n", dtype="int64", mean=None, std=None, data=[size]))
        assert results(record)[-1][2] == (size,)


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "MOST", 3)
    made = memory.Memory()
    for i in range(10):
        made.learn(i, None)
        made.learn((i,), [None, None])
    assert len(made.known) <= 3
