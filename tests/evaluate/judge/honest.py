"""Honest passes, generated: families of pointwise chains and row-wise operations, for three dtypes each."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch.nn import functional as F

from evaluate.tasks import Task
from tests.evaluate.judge.making import record, task

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
#: name -> (what eager computes, the pattern's text, the kernel's text for float32 values x and y)
POINTWISE: dict[str, tuple[Callable[..., torch.Tensor], str, str]] = {
    "mul_add": (lambda x, y: x * y + x, "x * y + x", "x * y + x"),
    "sub_square": (lambda x, y: x * x - y, "x * x - y", "x * x - y"),
    "gate": (lambda x, y: torch.sigmoid(x) * y, "torch.sigmoid(x) * y", "y / (1 + tl.exp(-x))"),
    "silu_gate": (lambda x, y: F.silu(x) * y, "torch.nn.functional.silu(x) * y", "x / (1 + tl.exp(-x)) * y"),
    "gelu_add": (
        lambda x, y: F.gelu(x) + y,
        "torch.nn.functional.gelu(x) + y",
        "tl.where(x == float('-inf'), float('nan'), 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))) + y",
    ),
    "abs_sub": (lambda x, y: torch.abs(x) - y, "torch.abs(x) - y", "tl.abs(x) - y"),
    "leaky": (
        lambda x, y: F.leaky_relu(x + y, 0.1),
        "torch.nn.functional.leaky_relu(x + y, 0.1)",
        "tl.where(x + y > 0, x + y, (x + y) * 0.1)",
    ),
    "clamp": (
        lambda x, y: torch.clamp(x, -1.0, 1.0) + y,
        "torch.clamp(x, -1.0, 1.0) + y",
        "tl.where(x > 1.0, 1.0, tl.where(x < -1.0, -1.0, x)) + y",
    ),
    "bell": (lambda x, y: torch.exp(-(x * x)) * y, "torch.exp(-(x * x)) * y", "tl.exp(-(x * x)) * y"),
    "root": (
        lambda x, y: torch.sqrt(torch.abs(x) + 1) * y,
        "torch.sqrt(torch.abs(x) + 1) * y",
        "tl.sqrt(tl.abs(x) + 1) * y",
    ),
    "choose": (lambda x, y: torch.where(x > y, x, y), "torch.where(x > y, x, y)", "tl.where(x > y, x, y)"),
    "waves": (lambda x, y: torch.sin(x) + torch.cos(y), "torch.sin(x) + torch.cos(y)", "tl.sin(x) + tl.cos(y)"),
    "scaled": (lambda x, y: (x + y) * 0.5 - 1, "(x + y) * 0.5 - 1", "(x + y) * 0.5 - 1"),
    "ratio": (lambda x, y: x / (torch.abs(y) + 1), "x / (torch.abs(y) + 1)", "x / (tl.abs(y) + 1)"),
}  # fmt: skip
ROWS: dict[str, tuple[Callable[..., torch.Tensor], str, str]] = {
    "softmax": (
        lambda x, y: torch.softmax(x + y, -1),
        "torch.softmax(x + y, -1)",
        "z = tl.where(mask, x + y, float('-inf'))\n    z = tl.exp(z - tl.max(z, 0))\n    r = z / tl.sum(z, 0)",
    ),
    "centre": (
        lambda x, y: x - x.mean(-1, keepdim=True) + y,
        "x - x.mean(-1, keepdim=True) + y",
        "r = x - tl.sum(x, 0) / n + y",
    ),
    "layer_norm": (
        lambda x, y: F.layer_norm(x + y, (40,)),
        "torch.nn.functional.layer_norm(x + y, (40,))",
        "z = x + y\n    d = tl.where(mask, z - tl.sum(z, 0) / n, 0.0)\n"
        "    r = d / tl.sqrt(tl.sum(d * d, 0) / n + 1e-5)",
    ),
    "rms": (
        lambda x, y: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * y,
        "x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * y",
        "r = x / tl.sqrt(tl.sum(x * x, 0) / n + 1e-5) * y",
    ),
    "normalise": (
        lambda x, y: x / (torch.abs(x).sum(-1, keepdim=True) + 1) + y,
        "x / (torch.abs(x).sum(-1, keepdim=True) + 1) + y",
        "r = x / (tl.sum(tl.abs(x), 0) + 1) + y",
    ),
    "row_sum_gate": (
        lambda x, y: torch.sigmoid((x * y).sum(-1, keepdim=True)) * x,
        "torch.sigmoid((x * y).sum(-1, keepdim=True)) * x",
        "r = x / (1 + tl.exp(-tl.sum(x * y, 0)))",
    ),
}
NAMES = [f"{name}-{dtype}" for name in (*POINTWISE, *ROWS) for dtype in DTYPES]

_HEAD = '''"""{name}, fused."""

import torch
import triton
import triton.language as tl


def pattern(x, y):
    return {pattern}


def replacement_args(x, y):
    return (x, y)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
'''
_POINTWISE = """    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + at, mask=mask).to(tl.float32)
    r = {value}
    tl.store(out_ptr + at, r, mask=mask)
"""
_ROW = """    at = tl.arange(0, BLOCK)
    mask = at < n
    row = tl.program_id(0) * n
    x = tl.load(x_ptr + row + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row + at, mask=mask, other=0.0).to(tl.float32)
    {value}
    tl.store(out_ptr + row + at, r, mask=mask)
"""
_TAIL = """

@torch.fx.wrap
def fused(x, y):
    out = torch.empty_like(x)
    n = {n}
    kernel[({programs},)](x, y, out, n, BLOCK={block})
    return out


def replacement_func():
    return fused
"""


def text(name: str) -> str:
    """The pass file of `family-dtype`."""
    family = name.partition("-")[0]
    if family in POINTWISE:
        _, pattern, value = POINTWISE[family]
        tail = _TAIL.format(n="x.numel()", programs="triton.cdiv(n, 128)", block=128)
        return _HEAD.format(name=family, pattern=pattern) + _POINTWISE.format(value=value) + tail
    _, pattern, value = ROWS[family]
    tail = _TAIL.format(n="x.shape[-1]", programs="x.numel() // n", block="triton.next_power_of_2(n)")
    return _HEAD.format(name=family, pattern=pattern) + _ROW.format(value=value) + tail


@functools.cache
def a_task(name: str) -> Task:
    """A task of one subgraph that the pass is written for."""
    family, _, dtype = name.partition("-")
    call = (POINTWISE | ROWS)[family][0]
    x, y = (torch.randn(8, 40, dtype=DTYPES[dtype]) for _ in range(2))
    return task(record(call, x, y))
