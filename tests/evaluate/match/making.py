"""Passes and graphs for the matcher's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from evaluate.match import Pass, make_pass


def a_pass(pattern: Any, replacement: Callable[..., Any] | None = None, args: Any = None, name: str = "rule") -> Pass:
    """A pass whose replacement computes the pattern, unless another is given."""

    def same(*values: Any) -> Any:
        return pattern(*values)

    chosen = replacement or same
    return make_pass(name, pattern, args or (lambda *values: values), lambda: chosen)


def traced(fn: Callable[..., Any]) -> fx.GraphModule:
    return fx.symbolic_trace(fn)


def dynamo(fn: Callable[..., Any], *inputs: Any) -> fx.GraphModule:
    """The graph that Dynamo gives to a backend."""
    found: list[fx.GraphModule] = []

    def keep(module: fx.GraphModule, _: Any) -> Any:
        found.append(module)
        return module.forward

    torch._dynamo.reset()
    torch.compile(fn, backend=keep, fullgraph=True)(*inputs)
    return found[0]


def targets(module: fx.GraphModule) -> list[str]:
    """Names of what is called, in order."""
    return [
        n.target if isinstance(n.target, str) else n.target.__name__
        for n in module.graph.nodes
        if n.op in ("call_function", "call_method")
    ]
