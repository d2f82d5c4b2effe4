"""Pass files for tests: an honest one, and folders made of texts."""

from __future__ import annotations

import json
from pathlib import Path

HONEST = '''
"""relu(x + y) in one kernel."""
import torch
import triton
import triton.language as tl

BLOCK = 256
CONFIGS = [triton.Config({"BLOCK": 2**k}, num_warps=4) for k in (7, 8)]


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return (x, y, "add_relu")


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    y = tl.load(y_ptr + at, mask=mask)
    tl.store(out_ptr + at, tl.maximum((x + y).to(x.dtype), 0), mask=mask)


@torch.fx.wrap
def fused(x, y, route):
    assert route == "add_relu"
    x, y = torch.broadcast_tensors(x, y) if False else (x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    kernel[grid](x, y, out, n, BLOCK=BLOCK)
    return out


def replacement_func():
    return fused
'''.replace("    x, y = torch.broadcast_tensors(x, y) if False else (x, y)\n", "")


def task(folder: Path, *rules: str, order: object = None, **files: str) -> Path:
    """A task's folder with the honest pass under each name of `rules`, and further files by stem."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**dict.fromkeys(rules, HONEST), **files}.items():
        (folder / f"{name}.py").write_text(text)
    listed = list(rules) if order is None else order
    (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps(listed))
    return folder
