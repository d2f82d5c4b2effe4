"""How a rewritten graph is run: directly, through Dynamo, or handed on to Inductor; and what the baselines are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

BASELINES = ("eager", "inductor", "inductor-max-autotune", "cudagraphs")


def lowered(module: fx.GraphModule, lowering: str, device: str) -> Callable[..., Any]:
    """A callable for the rewritten graph. Replacements stay opaque: Dynamo breaks the graph at each, so that what it
    makes of the rest cannot see into them, and Triton's interpreter, which it cannot trace, still runs."""
    if lowering == "direct":
        return module
    for node in module.graph.nodes:
        if node.op == "call_function" and getattr(node.target, "__name__", "") == "replaced":
            node.target = torch._dynamo.disable(node.target)
    module.recompile()
    backend = {"dynamo": "eager", "inductor": "inductor"}[lowering]
    return torch.compile(module, backend=backend, dynamic=False)


def of_baseline(module: fx.GraphModule, name: str) -> Callable[..., Any]:
    """A submission that is no file: eager mode, or a compiler at its settings."""
    if name == "eager":
        return module
    if name == "inductor":
        return torch.compile(module, dynamic=False)
    if name == "inductor-max-autotune":
        return torch.compile(module, dynamic=False, mode="max-autotune")
    if name == "cudagraphs":
        return torch.compile(module, dynamic=False, backend="cudagraphs")
    raise ValueError(f"no baseline is called {name!r}: {', '.join(BASELINES)}")
