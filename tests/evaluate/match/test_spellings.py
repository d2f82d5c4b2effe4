"""A pattern finds a call however either of them is spelled, and no call that computes something else."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx

from evaluate.match import rewrite
from tests.evaluate.match.making import a_pass, dynamo, traced
from warehouse.graph.from_fx import from_graph_module
from warehouse.graph.to_fx import to_graph_module

PLAIN = torch.contiguous_format
SAME: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("operator, function", lambda x, y: x + y, lambda x, y: torch.add(x, y)),
    ("function, method", lambda x, y: torch.mul(x, y), lambda x, y: x.mul(y)),
    ("keyword", lambda x, y: torch.sub(x, y), lambda x, y: torch.sub(input=x, other=y)),
    ("operands exchanged", lambda x, y: x + y, lambda x, y: y + x),
    ("scalar first", lambda x, y: (x * 2) + y, lambda x, y: (2 * x) + y),
    ("int and float", lambda x, y: x / 8 + y, lambda x, y: x / 8.0 + y),
    ("division", lambda x, y: x / y, lambda x, y: torch.true_divide(x, y)),
    ("multiply", lambda x, y: x * y, lambda x, y: torch.multiply(x, y)),
    ("matmul", lambda x, y: x @ y, lambda x, y: torch.matmul(x, other=y)),
    ("softmax", lambda x, y: F.softmax(x, dim=-1) + y, lambda x, y: x.softmax(-1) + y),
    ("softmax function", lambda x, y: torch.softmax(x, -1) + y, lambda x, y: F.softmax(x, -1, dtype=None) + y),
    ("relu", lambda x, y: F.relu(x) + y, lambda x, y: x.relu() + y),
    ("relu module's flag", lambda x, y: F.relu(x, inplace=False) + y, lambda x, y: torch.relu(x) + y),
    ("sigmoid", lambda x, y: x.sigmoid() * y, lambda x, y: y * torch.sigmoid(x)),
    ("default given", lambda x, y: F.gelu(x) + y, lambda x, y: F.gelu(x, approximate="none") + y),
    ("alpha of one", lambda x, y: torch.add(x, y, alpha=1), lambda x, y: x + y),
    ("one dimension", lambda x, y: x.sum(1) + y, lambda x, y: torch.sum(x, dim=(1,)) + y),
    ("keepdim", lambda x, y: x.mean(-1, keepdim=True) + y, lambda x, y: torch.mean(x, (-1,), True) + y),
    ("varargs", lambda x, y: x.view(2, -1) + y, lambda x, y: x.view((2, -1)) + y),
    ("varargs as list", lambda x, y: x.permute(1, 0) + y, lambda x, y: torch.permute(x, [1, 0]) + y),
    ("one of varargs", lambda x, y: x.reshape(-1) + y, lambda x, y: x.reshape((-1,)) + y),
    ("transpose", lambda x, y: x.transpose(0, 1) + y, lambda x, y: torch.transpose(x, dim0=0, dim1=1) + y),
    ("cast", lambda x, y: x.float() + y, lambda x, y: x.to(torch.float32) + y),
    ("cast by keyword", lambda x, y: x.half() + y, lambda x, y: x.to(dtype=torch.float16) + y),
    ("cast by type", lambda x, y: x.double() + y, lambda x, y: x.type(torch.float64) + y),
    ("list and tuple", lambda x, y: torch.cat([x, y], 1), lambda x, y: torch.cat((x, y), dim=1)),
    ("slices", lambda x, y: x[:, 1:3] + y, lambda x, y: x[:, slice(1, 3, None)] + y),
    ("dropout", lambda x, y: F.dropout(x, 0.1, False) + y, lambda x, y: F.dropout(x, p=0.1, training=False) + y),
    ("layer_norm", lambda x, y: F.layer_norm(x, (8,), y), lambda x, y: F.layer_norm(x, [8], weight=y, eps=1e-5)),
    ("linear", lambda x, y: F.linear(x, y), lambda x, y: F.linear(input=x, weight=y, bias=None)),
    ("layout", lambda x, y: x.contiguous() + y, lambda x, y: x.contiguous(memory_format=PLAIN) + y),
    ("pow", lambda x, y: x**2 + y, lambda x, y: torch.pow(x, 2) + y),
    ("negation", lambda x, y: -x + y, lambda x, y: x.neg() + y),
    ("comparison", lambda x, y: x == y, lambda x, y: torch.eq(y, x)),
    ("rounding", lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda x, y: x.div(y, rounding_mode="floor")),
    ("masked_fill", lambda x, y: x.masked_fill(y, 0.0), lambda x, y: torch.masked_fill(x, y, value=0)),
    ("clamp", lambda x, y: x.clamp(min=0) + y, lambda x, y: torch.clamp(x, 0) + y),
    ("pooling", lambda x, y: F.max_pool2d(x, 2) + y, lambda x, y: F.max_pool2d(x, kernel_size=2) + y),
    ("attribute", lambda x, y: x.T + y, lambda x, y: y + x.T),
    ("axis", lambda x, y: x.sum(1, True) + y, lambda x, y: torch.sum(x, axis=1, keepdims=True) + y),
    ("comparison exchanged", lambda x, y: x > y, lambda x, y: torch.lt(y, x)),
    ("comparison with a number", lambda x, y: (x >= 0) * y, lambda x, y: x.ge(0) * y),
    ("number exchanged", lambda x, y: (x >= 0) * y, lambda x, y: operator.le(0, x) * y),
    ("subtraction from a number", lambda x, y: (1 - x) + y, lambda x, y: torch.rsub(x, 1) + y),
    ("bound", lambda x, y: x.clamp(min=0) + y, lambda x, y: x.clamp_min(0) + y),
    ("clip", lambda x, y: x.clamp(-1, 1) + y, lambda x, y: torch.clip(x, min=-1.0, max=1.0) + y),
    ("larger of two", lambda x, y: torch.max(x, y), lambda x, y: torch.maximum(y, x)),
    ("square", lambda x, y: x.square() + y, lambda x, y: x**2 + y),
    ("view", lambda x, y: x.view(2, -1) + y, lambda x, y: x.reshape(2, -1) + y),
    ("axes", lambda x, y: x.transpose(0, 1) + y, lambda x, y: torch.swapaxes(x, 1, 0) + y),
    ("axes of a permutation", lambda x, y: x.transpose(1, 2) + y, lambda x, y: x.permute(0, 2, 1) + y),
    ("negative axes of one", lambda x, y: x.transpose(-1, -2) + y, lambda x, y: x.permute(0, 1, 3, 2) + y),
    ("two axes", lambda x, y: x.t() + y, lambda x, y: x.permute(1, 0) + y),
    ("last two axes", lambda x, y: x.mT + y, lambda x, y: x.transpose(-2, -1) + y),
    ("window", lambda x, y: F.max_pool2d(x, 2, 2) + y, lambda x, y: F.max_pool2d(x, (2, 2)) + y),
    ("strides", lambda x, y: F.conv2d(x, y, None, 2, 1), lambda x, y: F.conv2d(x, y, None, (2, 2), (1, 1), (1, 1), 1)),
    ("padding", lambda x, y: F.pad(x, (0, 1)) + y, lambda x, y: F.pad(x, (0, 1), "constant", 0.0) + y),
    ("functional in place", lambda x, y: F.relu(x * 2) + y, lambda x, y: F.relu_(x * 2) + y),
    ("silu module's flag", lambda x, y: F.silu(x * 2) + y, lambda x, y: F.silu(x * 2, inplace=True) + y),
    ("concatenate", lambda x, y: torch.cat([x, y], 1), lambda x, y: torch.concat((x, y), 1)),
    ("names of old", lambda x, y: x.abs() + y.neg(), lambda x, y: torch.absolute(x) + torch.negative(y)),
]  # fmt: skip

OTHER: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("another operator", lambda x, y: x + y, lambda x, y: x - y),
    ("operands of a subtraction", lambda x, y: (x * 2) - y, lambda x, y: y - (x * 2)),
    ("another literal", lambda x, y: x / 8 + y, lambda x, y: x / 7 + y),
    ("a flag is no number", lambda x, y: x.sum(1, keepdim=True) + y, lambda x, y: x.sum(1, keepdim=False) + y),
    ("another dimension", lambda x, y: x.softmax(-1) + y, lambda x, y: x.softmax(0) + y),
    ("fewer dimensions", lambda x, y: x.mean((0, 1)) + y, lambda x, y: x.mean(0) + y),
    ("another dtype", lambda x, y: x.float() + y, lambda x, y: x.half() + y),
    ("a scale", lambda x, y: torch.add(x, y), lambda x, y: torch.add(x, y, alpha=2)),
    ("approximation", lambda x, y: F.gelu(x) + y, lambda x, y: F.gelu(x, approximate="tanh") + y),
    ("rounding", lambda x, y: torch.div(x, y), lambda x, y: torch.div(x, y, rounding_mode="floor")),
    ("another slice", lambda x, y: x[:, 1:3] + y, lambda x, y: x[:, 1:4] + y),
    ("another attribute", lambda x, y: x.T + y, lambda x, y: x.mT + y),
    ("eps", lambda x, y: F.layer_norm(x, (8,), y), lambda x, y: F.layer_norm(x, (8,), y, eps=1e-6)),
    ("order of a list", lambda x, y: torch.cat([x, y.relu()], 1), lambda x, y: torch.cat([x.relu(), y], 1)),
    ("bound twice", lambda x, y: (x + 1) * x + y, lambda x, y: (x + 1) * y + x),
    ("text", lambda x, y: torch.einsum("ij,jk", x, y), lambda x, y: torch.einsum("ij,kj", x, y)),
    ("comparison turned", lambda x, y: x > y * 2, lambda x, y: x < y * 2),
    ("the other bound", lambda x, y: x.clamp_min(0) + y, lambda x, y: x.clamp_max(0) + y),
    ("one of max's two", lambda x, y: torch.max(x, 1)[0] + y, lambda x, y: torch.amax(x, 1) + y),
    ("a cube", lambda x, y: x.square() + y, lambda x, y: x**3 + y),
    ("axes of unknown rank", lambda x, y: x.transpose(-1, -2) + y, lambda x, y: x.transpose(1, 2) + y),
    ("another permutation", lambda x, y: x.permute(0, 2, 1) + y, lambda x, y: x.transpose(0, 1) + y),
    ("a view as another dtype", lambda x, y: x.view(torch.int32) + y, lambda x, y: x.view(2, -1) + y),
    ("one of two strides", lambda x, y: F.conv2d(x, y, None, 2), lambda x, y: F.conv2d(x, y, None, (2, 1))),
    ("a window's step", lambda x, y: F.max_pool2d(x, 2, 1) + y, lambda x, y: F.max_pool2d(x, 2) + y),
    ("padded with ones", lambda x, y: F.pad(x, (0, 1)) + y, lambda x, y: F.pad(x, (0, 1), value=1.0) + y),
]

#: Of tensors of shape [2, 3, 4], where rank and sizes are known.
SHAPED: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("last dimension", lambda x, y: x.softmax(-1) + y, lambda x, y: x.softmax(2) + y),
    ("keyword", lambda x, y: F.softmax(x, dim=-2) + y, lambda x, y: torch.softmax(x, 1) + y),
    ("reduction", lambda x, y: x.sum(-1, keepdim=True) + y, lambda x, y: torch.sum(x, dim=2, keepdim=True) + y),
    ("several", lambda x, y: x.mean((-1, -2), True) + y, lambda x, y: x.mean((1, 2), keepdim=True) + y),
    ("all", lambda x, y: x.sum() + y, lambda x, y: x.sum((0, 1, 2)) + y),
    ("concatenation", lambda x, y: torch.cat([x, y], -1), lambda x, y: torch.cat([x, y], 2)),
    ("stack", lambda x, y: torch.stack([x, y], -1), lambda x, y: torch.stack([x, y], 3)),
    ("unsqueeze", lambda x, y: x.unsqueeze(-1) * y.sum(), lambda x, y: x.unsqueeze(3) * y.sum()),
    ("flatten", lambda x, y: x.flatten(1) * y.sum(), lambda x, y: torch.flatten(x, start_dim=-2, end_dim=2) * y.sum()),
    ("axes", lambda x, y: x.transpose(-1, -2) * y.sum(), lambda x, y: x.transpose(1, 2) * y.sum()),
    ("axes of a permutation", lambda x, y: x.permute(-3, -1, -2) * y.sum(), lambda x, y: x.mT * y.sum()),
    ("what is left", lambda x, y: x.view(2, -1) * y.sum(), lambda x, y: x.reshape(2, 12) * y.sum()),
    ("expanded", lambda x, y: x[:, :1].expand(-1, 3, -1) + y, lambda x, y: x[:, :1].expand(2, 3, 4) + y),
    ("split", lambda x, y: x.chunk(2, -1)[0] * y.sum(), lambda x, y: torch.chunk(x, 2, dim=2)[0] * y.sum()),
    ("cumulative", lambda x, y: x.cumsum(-1) + y, lambda x, y: torch.cumsum(x, dim=2) + y),
    ("rolled", lambda x, y: x.roll((1, 2), (-1, -2)) + y, lambda x, y: torch.roll(x, (1, 2), (2, 1)) + y),
    ("behind a replaced one", lambda x, y: (x + y).softmax(-1) * 2, lambda x, y: (x + y).softmax(2) * 2),
]  # fmt: skip
SHAPED_OTHER: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("another dimension", lambda x, y: x.softmax(-2) + y, lambda x, y: x.softmax(2) + y),
    ("one of several", lambda x, y: x.mean((-1, -2), True) + y, lambda x, y: x.mean((0, 2), keepdim=True) + y),
    ("not all", lambda x, y: x.sum() + y, lambda x, y: x.sum((0, 1)) + y),
    ("unsqueeze counts one more", lambda x, y: x.unsqueeze(-1) * y.sum(), lambda x, y: x.unsqueeze(2) * y.sum()),
    ("order matters to roll", lambda x, y: x.roll((1, 2), (1, 2)) + y, lambda x, y: x.roll((1, 2), (2, 1)) + y),
    ("what is left, elsewhere", lambda x, y: x.view(-1, 2) * y.sum(), lambda x, y: x.reshape(2, 12) * y.sum()),
]  # fmt: skip


@pytest.mark.parametrize("pattern, graph", [s[1:] for s in SAME], ids=[s[0] for s in SAME])
def test_spellings_of_one_call_match_both_ways(pattern: Callable[..., Any], graph: Callable[..., Any]):
    for mine, theirs in ((pattern, graph), (graph, pattern)):
        found = rewrite(traced(theirs), a_pass(mine))
        assert len(found.sites) == 1, found.misses
        assert found.coverage.covered == found.coverage.ops


@pytest.mark.parametrize("pattern, graph", [s[1:] for s in OTHER], ids=[s[0] for s in OTHER])
def test_calls_that_compute_something_else_do_not_match(pattern: Callable[..., Any], graph: Callable[..., Any]):
    for mine, theirs in ((pattern, graph), (graph, pattern)):
        found = rewrite(traced(theirs), a_pass(mine))
        assert not found.sites and len(found.misses) == 1


@pytest.mark.parametrize("in_place", [operator.iadd, torch.Tensor.add_])
def test_writes_in_place_of_a_value_that_nobody_else_sees_are_pure(in_place: Any):
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    double = graph.call_function(operator.mul, (x, 2))
    made = (
        graph.call_method("add_", (double, y))
        if in_place is not operator.iadd
        else graph.call_function(in_place, (double, y))
    )
    graph.output(made)
    found = rewrite(fx.GraphModule(torch.nn.Module(), graph), a_pass(lambda a, b: a + b))
    assert len(found.sites) == 1 and found.coverage.covered == 1


def known(fn: Callable[..., Any], recorded: bool) -> fx.GraphModule:
    """The graph of `fn` as Dynamo gives it, or as a warehouse gives it back."""
    module = dynamo(fn, torch.randn(2, 3, 4), torch.randn(2, 3, 4))
    return to_graph_module(from_graph_module(module)) if recorded else module


@pytest.mark.parametrize("recorded", [False, True], ids=["from dynamo", "from a record"])
@pytest.mark.parametrize("pattern, graph", [s[1:] for s in SHAPED], ids=[s[0] for s in SHAPED])
def test_where_sizes_are_known_literals_match_by_what_they_mean(
    pattern: Callable[..., Any], graph: Callable[..., Any], recorded: bool
):
    for mine, theirs in ((pattern, graph), (graph, pattern)):
        found = rewrite(known(theirs, recorded), a_pass(mine))
        assert len(found.sites) == 1, found.misses
        assert found.coverage.covered == found.coverage.ops


@pytest.mark.parametrize("pattern, graph", [s[1:] for s in SHAPED_OTHER], ids=[s[0] for s in SHAPED_OTHER])
def test_and_do_not_match_where_they_mean_something_else(pattern: Callable[..., Any], graph: Callable[..., Any]):
    for mine, theirs in ((pattern, graph), (graph, pattern)):
        assert not rewrite(known(theirs, True), a_pass(mine)).sites


def test_the_rank_of_what_a_pass_gives_is_known_to_the_next():
    graph = known(lambda x, y: (x + y).softmax(2), True)
    rules = [a_pass(lambda x, y: x + y, name="first"), a_pass(lambda x: x.softmax(-1), name="second")]
    assert [site.rule for site in rewrite(graph, rules).sites] == ["first", "second"]
