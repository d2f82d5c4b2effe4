"""Bytes that must move, counted by hand; and the time of a copy of as many."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from evaluate.measure.floor import Copies, bytes_moved

F = torch.nn.functional


def floats(*shape: int) -> torch.Tensor:
    return torch.ones(shape)


@pytest.mark.parametrize(
    ("what", "call", "inputs", "read", "written"),
    [
        ("each input once, however often it is read", lambda x: x * x + x, [floats(8)], 32, 32),
        ("an input that nothing reads", lambda x, y: x + 1, [floats(8), floats(1000)], 32, 32),
        ("a view of an input is not written", lambda x: x.t(), [floats(4, 4)], 0, 0),
        ("a transposed copy", lambda x: x.t().contiguous(), [floats(4, 4)], 64, 64),
        ("the half that a slice reaches", lambda x: x[:2] + 1, [floats(4, 4)], 32, 32),
        ("two slices of one input", lambda x: x[:2] + x[2:], [floats(4, 4)], 64, 32),
        ("overlapping slices count at most the whole", lambda x: x[:3] + x[1:], [floats(4, 4)], 64, 48),
        ("an expanded input counts its own elements", lambda x: x.expand(5, 8) + 1, [floats(1, 8)], 32, 160),
        ("outputs that share memory are written once", lambda x: (y := x + 1, y.view(2, 4)), [floats(8)], 32, 32),
        ("what lies between is not written", lambda x: ((x + 1) * 2).sum(), [floats(8)], 32, 4),
        ("half-precision outputs are smaller", lambda x: x.half(), [floats(8)], 32, 16),
        ("three rows of a table", lambda i, w: F.embedding(i, w), [torch.arange(3), floats(99, 4)], 72, 48),
        ("a mutated input is read and written", lambda x: x.add_(1), [floats(8)], 32, 32),
        ("nothing for an empty tensor", lambda x: x + 1, [floats(0)], 0, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fake", [False, True])
def test_bytes(what, call, inputs, read, written, fake):
    if fake:
        with FakeTensorMode() as mode:
            found = bytes_moved(call, [mode.from_tensor(t) for t in inputs])
    else:
        found = bytes_moved(call, [t.clone() for t in inputs])
    assert (found.read, found.written, found.total) == (read, written, read + written), what


def test_the_floor_runs_along_the_measured_copies():
    copies = Copies(((1_000, 2.0), (1_000_000, 4.0), (1_000_000_000, 404.0)))
    assert copies.floor_us(10) == 2.0
    assert copies.floor_us(1_000) == 2.0
    assert copies.floor_us(500_500) == pytest.approx(3.0)
    assert copies.floor_us(1_000_000_000) == pytest.approx(404.0)
    assert copies.floor_us(2_000_000_000) == pytest.approx(808.0)
    assert copies.launch_us == 2.0
    assert copies.bandwidth_gbps == pytest.approx(1_000_000_000 / 404e-6 / 1e9)
