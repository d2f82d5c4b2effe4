"""From the dotted name that a sample's text calls to the operator that a record stores.

The table of spellings is made from the installed torch: every listed operator under every name that the namespaces
below give it (`torch._C._nn.linear` is `torch.nn.functional.linear`). A sample's text is only ever a key of it.
"""

from __future__ import annotations

import functools
import math
import operator

import torch

from warehouse.graph import operators
from warehouse.graph.operators import ALIASES, LISTED

#: Where torch shows the same function again. Private ones are what Dynamo of the samples' time printed.
_NAMESPACES = {
    "torch": torch,
    "torch.functional": torch.functional,
    "torch.nn.functional": torch.nn.functional,
    "torch.special": torch.special,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
    "torch._VF": torch._VF,
    "torch._C._nn": torch._C._nn,
    "torch._C._fft": torch._C._fft,  # type: ignore[attr-defined]
    "torch._C._linalg": torch._C._linalg,  # type: ignore[attr-defined]
    "torch._C._special": torch._C._special,  # type: ignore[attr-defined]
    "torch._C._VariableFunctions": torch._C._VariableFunctions,
    "operator": operator,
    "_operator": operator,
    "math": math,
}
#: Names of other releases and other layers for what is listed, with the same arguments.
_SYNONYMS = {
    "torch._C._functorch._vmap_increment_nesting": "torch._functorch.predispatch._vmap_increment_nesting",
    "torch._C._functorch._vmap_decrement_nesting": "torch._functorch.predispatch._vmap_decrement_nesting",
    "torch._C._functorch._add_batch_dim": "torch._functorch.predispatch._add_batch_dim",
    "torch._C._functorch._remove_batch_dim": "torch._functorch.predispatch._remove_batch_dim",
    "torch.ops.aten._local_scalar_dense": "torch.Tensor.item",
}
#: Calls that only count how often an API is used, or make an object that no operator takes; records leave them out.
IGNORED = frozenset({"torch._C._log_api_usage_once", "torch.autograd.function.FunctionCtx"})
#: Builtins that a sample may call by their bare name.
_BARE = frozenset(name.removeprefix("builtins.") for name in LISTED if name.startswith("builtins."))


@functools.cache
def _spellings() -> dict[str, str]:
    found: dict[str, str] = {}
    for prefix, namespace in _NAMESPACES.items():
        for attribute in dir(namespace):
            value = getattr(namespace, attribute, None)
            if callable(value) and not isinstance(value, type):
                name = operators.name_of(value, "call_function")
                if name is not None:
                    found[f"{prefix}.{attribute}"] = name
    found.update({name: stored for name, stored in ALIASES.items() if not name.startswith(operators.METHOD)})
    found.update({name: name for name, (kind, _) in LISTED.items() if kind in ("function", "higher_order", "region")})
    found.update(_SYNONYMS)
    return found


def function(dotted: str) -> str | None:
    """The listed name of the function that a text calls `dotted`; None when there is none."""
    table = _spellings()
    if dotted in table:
        return table[dotted]
    if dotted in _BARE:
        return f"builtins.{dotted}"
    if dotted.startswith("torch.ops."):  # an overload is called by its packet's name
        return table.get(dotted.rpartition(".")[0])
    return None
