"""Whether two literals of one parameter mean the same, although they are written otherwise.

`dim=-1` and `dim=2` of a tensor of rank 3; `(2, 3)` and `(-1, -2)` of a reduction, whose order says nothing; `(2, -1)`
and `(2, 24)` where 24 is what is left; `stride=2`, `(2, 2)`, and a stride left out of a pooling; `transpose(1, 2)` and
`permute(0, 2, 1)`. What rank and sizes are, is known of the graph; a pattern has none of its own.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from evaluate.match.calls import Call
from evaluate.match.twins import Order, sizes_of

_DIMENSIONS = frozenset({"dim", "dims", "start_dim", "end_dim", "source", "destination", "dim0", "dim1", "dim2"})
#: A dimension of the result, which has one more than the input.
_ONE_MORE = frozenset({"unsqueeze", "stack", "diag_embed"})
#: The order of the dimensions says nothing.
_REDUCTIONS = frozenset(
    {"sum", "mean", "amax", "amin", "var", "std", "any", "all", "logsumexp", "flip", "nansum", "nanmean", "squeeze"}
)
#: One number stands for the same in every dimension.
_EACH = frozenset({"kernel_size", "stride", "padding", "dilation", "output_size", "output_padding", "scale_factor"})


def alike(name: str, wanted: Any, found: Any, call: Call, node: fx.Node) -> bool:
    """Whether the pattern's literal `wanted` says what the graph's `found` says. call, node: the graph's."""
    if isinstance(wanted, Order) and isinstance(found, Order):
        return _one_order(wanted, found, call)
    if name in _DIMENSIONS:
        return _one_place(wanted, found, call)
    if name == "shape" and call.key == "reshape" or name == "size" and call.key == "expand":
        return _one_shape(wanted, found, node)
    if name == "stride" and "pool" in call.key and (wanted is None or found is None):
        kernel = call.arguments.get("kernel_size")
        wanted, found = (kernel if v in (None, ()) else v for v in (wanted, found))
    if name in _EACH:
        return _repeated(wanted, found)
    return (
        name == "value"
        and call.key == "pad"
        and {type(wanted), type(found)} <= {type(None), int, float}
        and ((wanted or 0) == (found or 0))
    )


def whole(name: str, value: Any, call: Call) -> bool:
    """Whether a reduction's dimensions are all that its input has, which is what it does without any."""
    sizes = sizes_of(call.arguments.get("self"))
    if name != "dim" or call.key not in _REDUCTIONS - {"flip", "squeeze"} or sizes is None:
        return False
    return _placed(value, len(sizes)) == tuple(range(len(sizes)))


def _one_order(wanted: Order, found: Order, call: Call) -> bool:
    sizes = sizes_of(call.arguments.get("self"))
    ranks = {r for r in (wanted.rank, found.rank, None if sizes is None else len(sizes)) if r is not None}
    if not ranks:  # without a rank two exchanges are one when they name the same two dimensions
        return wanted.exchanged is not None and wanted.exchanged == found.exchanged
    if len(ranks) > 1:
        return False
    (rank,) = ranks
    order = found.of(rank)
    return order is not None and wanted.of(rank) == order


def _one_place(wanted: Any, found: Any, call: Call) -> bool:
    of = call.arguments.get("self", call.arguments.get("tensors"))
    sizes = sizes_of(of[0] if isinstance(of, tuple) and of else of)
    if sizes is None:
        return False
    rank = len(sizes) + (call.key in _ONE_MORE)
    first, second = _placed(wanted, rank), _placed(found, rank)
    if first is None or second is None:
        return False
    return sorted(first) == sorted(second) if call.key in _REDUCTIONS else first == second


def _placed(value: Any, rank: int) -> tuple[int, ...] | None:
    """Dimensions counted from the first; None for what is no dimension."""
    values = value if isinstance(value, tuple) else (value,)
    if not values or not all(type(v) is int and -rank <= v < rank for v in values):
        return None
    return tuple(v % rank for v in values)


def _one_shape(wanted: Any, found: Any, node: fx.Node) -> bool:
    """Sizes, of which -1 stands for what the result has there."""
    sizes = sizes_of(node)
    if sizes is None or not isinstance(wanted, tuple) or not isinstance(found, tuple):
        return False
    if not len(wanted) == len(found) == len(sizes):
        return False
    return all(
        type(w) is int and type(f) is int and (w == f or (-1 in (w, f) and s is not None and s == max(w, f)))
        for w, f, s in zip(wanted, found, sizes, strict=True)
    )


def _repeated(wanted: Any, found: Any) -> bool:
    values = [v if isinstance(v, tuple) else (v,) for v in (wanted, found)]
    numbers = all(type(n) in (int, float) for v in values for n in v) and all(values)
    return numbers and (1 in map(len, values)) and len({n for v in values for n in v}) == 1
