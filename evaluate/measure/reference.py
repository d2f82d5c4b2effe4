"""The same computation in float64: what an exact machine would have answered, up to 1e-16.

In go a graph module and its inputs, out come a module and inputs with every floating dtype made float64: the inputs,
the constants, and the dtypes that the graph's own calls name (`to(torch.float16)`, `.float()`, `dtype=...`). Whether
the result runs is found by running it: an operator that reads bits (`view(torch.int32)`) has no float64 form.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

_CASTS = {"half", "bfloat16", "float"}
_REAL = (torch.float16, torch.bfloat16, torch.float32)
_COMPLEX = (torch.complex32, torch.complex64)


def widened(value: Any) -> Any:
    """A value in float64 (complex128), as a copy that shares nothing; its strides are kept. Other dtypes are copied."""
    if not isinstance(value, torch.Tensor):
        return value
    dtype = torch.float64 if value.dtype in _REAL else torch.complex128 if value.dtype in _COMPLEX else value.dtype
    return value.detach().clone().to(dtype)


def in_float64(module: fx.GraphModule) -> fx.GraphModule:
    """A copy of `module` that computes in float64, nested graphs included."""
    made = copy.deepcopy(module)
    for part in [m for m in made.modules() if isinstance(m, fx.GraphModule)]:
        for node in part.graph.nodes:
            node.args = fx.node.map_aggregate(node.args, _wide)  # type: ignore[assignment]
            node.kwargs = fx.node.map_aggregate(node.kwargs, _wide)  # type: ignore[assignment]
            if node.op == "call_method" and node.target in _CASTS:
                node.target = "double"
            elif node.target in (torch.Tensor.half, torch.Tensor.bfloat16, torch.Tensor.float):
                node.target = torch.Tensor.double
        part.recompile()
    return made.double()


def run(module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """Outputs of the float64 form of `module` on widened `inputs`. Raises what torch raises where it has none."""
    with torch.no_grad():
        return in_float64(module)(*map(widened, inputs))


def _wide(argument: Any) -> Any:
    if isinstance(argument, torch.dtype):
        return torch.float64 if argument in _REAL else torch.complex128 if argument in _COMPLEX else argument
    return argument
