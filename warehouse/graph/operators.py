"""The allow-list of operators: names to torch objects and back, and what a call of each may do.

In: `operators.txt`, one listed operator a line. Out: `lookup` (name -> Operator) for rebuilding a graph, `name_of`
(live FX target -> name) for recording one, and per-call answers about writing and randomness. A name is resolved by
walking attributes from fixed roots, and only when it is listed: text from a stored graph never reaches `getattr`.
"""

from __future__ import annotations

import builtins
import contextlib
import difflib
import functools
import importlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import torch

from warehouse.graph.record import RecordError

KINDS = ("function", "method", "attribute", "higher_order", "region")
TRAITS = ("commutative", "mutates", "random", "effect", "view", "extern")
METHOD = "torch.Tensor."

_ROOTS = {"torch": torch, "operator": operator, "math": math, "builtins": builtins}
#: Operators that exist only once a library has registered them: listed prefix -> module to import.
_REGISTERED_BY = {
    "torch.ops.torchvision.": "torchvision",
    "torch.ops.higher_order.": "torch._higher_order_ops.flex_attention",
    "torch._functorch.": "torch._functorch.predispatch",
}


@dataclass(frozen=True, slots=True)
class Operator:
    """A listed operator. `fn` is what FX calls: a function, or for methods and attributes the bare name."""

    name: str
    kind: str
    traits: frozenset[str]
    fn: Callable[..., Any] | str


def _read() -> tuple[dict[str, tuple[str, frozenset[str]]], dict[str, str]]:
    """(listed name -> kind and traits, other name -> listed name) of operators.txt."""
    text = resources.files("warehouse.graph").joinpath("operators.txt").read_text(encoding="utf-8")
    listed: dict[str, tuple[str, frozenset[str]]] = {}
    aliases: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        name, kind, *traits = words
        fresh = name not in listed and name not in aliases and name.split(".")[0] in _ROOTS
        if fresh and kind == "alias" and len(traits) == 1 and traits[0] in listed:
            aliases[name] = traits[0]
        elif fresh and kind in KINDS and set(traits) <= set(TRAITS):
            listed[name] = (kind, frozenset(traits))
        else:
            raise ValueError(f"operators.txt line {number} is malformed, or repeats a name: {line!r}")
    return listed, aliases


LISTED, ALIASES = _read()


def _with(trait: str) -> frozenset[str]:
    return frozenset(name for name, (_, traits) in LISTED.items() if trait in traits)


#: The first two positional arguments may change places, on tensors and numbers and without keyword arguments.
COMMUTATIVE = _with("commutative")
#: The result may share memory with the first argument (or, for meshgrid and broadcast_tensors, with any).
VIEWS = _with("view")
#: May write an argument: see `mutated_operands`.
MUTATING = _with("mutates")
#: May draw random numbers: see `is_effectful`.
RANDOM = _with("random")
#: Inductor hands the operator to an extern kernel.
EXTERN = _with("extern")


@functools.cache
def lookup(name: str) -> Operator:
    """The listed operator called `name`.

    Raises RecordError("operator_not_listed") when it is off the list or missing from the installed torch.
    """
    if name in ALIASES:
        raise RecordError("operator_not_listed", f"operator {name} is stored under the name {ALIASES[name]}")
    if name not in LISTED:
        near = difflib.get_close_matches(name[:120], LISTED, n=1)
        hint = f"; the nearest listed name is {near[0]}" if near else ""
        raise RecordError(
            "operator_not_listed",
            f"operator {name[:120]!r} is not on the allow-list{hint}; add it to warehouse/graph/operators.txt if it is "
            "pure tensor computation",
        )
    kind, traits = LISTED[name]
    fn = name.rpartition(".")[2] if kind in ("method", "attribute") else _resolve(name)
    if fn is None:
        raise RecordError("operator_not_listed", f"operator {name} is listed, but torch {torch.__version__} lacks it")
    return Operator(name, kind, traits, fn)


def _resolve(name: str) -> Callable[..., Any] | None:
    """The object that a *listed* name stands for; None when this installation lacks it."""
    for prefix, module in _REGISTERED_BY.items():
        if name.startswith(prefix):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
    root, *parts = name.split(".")
    found: Any = _ROOTS[root]
    for part in parts:
        try:
            found = getattr(found, part)
        except (AttributeError, RuntimeError):  # torch.ops raises either for an operator nobody registered
            return None
    return found  # type: ignore[no-any-return]


@functools.cache
def _names() -> dict[Any, str]:
    """Function object -> listed name, the first listed of several. Equal builtins are the same function."""
    found: dict[Any, str] = {}
    for name, (kind, _) in LISTED.items():
        if kind not in ("method", "attribute"):
            fn = _resolve(name)
            if fn is not None:
                found.setdefault(fn, name)
    for name, stored in ALIASES.items():
        fn = None if name.startswith(METHOD) else _resolve(name)
        if fn is not None:
            found.setdefault(fn, stored)
    return found


def name_of(target: Any, op_kind: str) -> str | None:
    """The listed name of a live FX target (a function, builtin, torch.ops object, or method name); None if unlisted.

    op_kind is the FX op: `call_function` or `call_method`. An overload is called by its packet's name. Dynamo may call
    a function to read an attribute (`torch.ops.aten.numpy_T`); it gets the attribute's name.
    """
    if op_kind == "call_method":
        name = ALIASES.get(f"{METHOD}{target}", f"{METHOD}{target}")
        return name if name in LISTED and LISTED[name][0] == "method" else None
    try:
        found = _names().get(target)
    except TypeError:  # not hashable, so not a function of ours
        return None
    if found is None and isinstance(target, torch._ops.OpOverload):
        return _names().get(target.overloadpacket)
    return found


def attribute_name(attribute: str) -> str:
    """The listed name of reading `attribute` of a tensor. Raises RecordError("operator_not_listed")."""
    name = f"{METHOD}{attribute}"
    if name in LISTED and LISTED[name][0] == "attribute":
        return name
    known = ", ".join(n.removeprefix(METHOD) for n, (kind, _) in LISTED.items() if kind == "attribute")
    raise RecordError("operator_not_listed", f"tensor attribute {attribute[:120]!r} is not on the allow-list: {known}")


_F = "torch.nn.functional."
#: Operator -> position of its `inplace` flag.
_INPLACE = {
    **{_F + n: 1 for n in ("relu", "relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid")},
    **{_F + n: 2 for n in ("elu", "celu", "leaky_relu")},
    **{_F + n: 3 for n in ("hardtanh", "threshold", "dropout", "dropout1d", "dropout2d", "dropout3d")},
    **{_F + n: 3 for n in ("alpha_dropout", "feature_alpha_dropout")},
    _F + "rrelu": 4,
}
#: Random operator -> (position of its training flag, keyword, default). A flag that is False makes it pure.
_TRAINING: dict[str, tuple[int, str, bool]] = {
    **{_F + n: (2, "training", True) for n in ("dropout", "dropout1d", "dropout2d", "dropout3d")},
    **{_F + n: (2, "training", False) for n in ("alpha_dropout", "feature_alpha_dropout")},
    **{f"torch.{n}dropout": (2, "train", True) for n in ("", "alpha_", "feature_alpha_", "feature_", "native_")},
    _F + "rrelu": (3, "training", False),
    "torch.rrelu": (3, "training", False),
    "torch.rrelu_": (3, "training", False),
    _F + "rrelu_": (3, "training", False),
}
#: Operator -> (running statistics' positions and keywords, flag's position, keyword and default).
_RUNNING: dict[str, tuple[tuple[tuple[int, str], ...], int, str, bool]] = {
    _F + "batch_norm": (((1, "running_mean"), (2, "running_var")), 5, "training", False),
    _F + "instance_norm": (((1, "running_mean"), (2, "running_var")), 5, "use_input_stats", True),
    "torch.batch_norm": (((3, "running_mean"), (4, "running_var")), 5, "training", False),
    "torch.native_batch_norm": (((3, "running_mean"), (4, "running_var")), 5, "training", False),
    "torch.instance_norm": (((3, "running_mean"), (4, "running_var")), 5, "use_input_stats", True),
}
_RENORMED = {_F + "embedding": 3, _F + "embedding_bag": 3}  # position of max_norm
_WRITES_SECOND = {"torch._C._nn.rrelu_with_noise"}


def _argument(args: Sequence[Any], kwargs: Mapping[str, Any], position: int, keyword: str, default: Any) -> Any:
    if keyword in kwargs:
        return kwargs[keyword]
    return args[position] if position < len(args) else default


def mutated_operands(target: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Positions and keywords of the arguments that this call writes. A flag known only at run time counts as set."""
    written: list[int | str] = ["out"] if kwargs.get("out") is not None else []
    if target not in MUTATING:
        return tuple(written)
    first: int | str = 0 if args else next(iter(kwargs), 0)
    if target in _INPLACE:
        if _argument(args, kwargs, _INPLACE[target], "inplace", False) is not False:
            written.append(first)
    elif target in _RUNNING:
        statistics, position, keyword, default = _RUNNING[target]
        if _argument(args, kwargs, position, keyword, default) is not False:
            for at, name in statistics:
                if _argument(args, kwargs, at, name, None) is not None:
                    written.append(name if name in kwargs else at)
    elif target in _RENORMED:
        if _argument(args, kwargs, _RENORMED[target], "max_norm", None) is not None:
            written.append("weight" if "weight" in kwargs else 1)
    else:
        written.append(1 if target in _WRITES_SECOND else first)
    return tuple(written)


def _draws(target: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether this call of a RANDOM operator may draw random numbers."""
    if target in _TRAINING:
        return _argument(args, kwargs, *_TRAINING[target]) is not False
    if target == _F + "scaled_dot_product_attention":
        return bool(_argument(args, kwargs, 4, "dropout_p", 0.0) != 0)
    if target == _F + "multi_head_attention_forward":
        training = _argument(args, kwargs, 13, "training", True)
        return training is not False and bool(_argument(args, kwargs, 10, "dropout_p", 0.0) != 0)
    if target.rpartition(".")[2] in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        # (input, hx, params, ...) or, packed, (data, batch_sizes, hx, params, ...); then biases, layers, dropout, train
        after = 3 if len(args) > 2 and isinstance(args[2], list | tuple) else 4
        dropout, train = (args[i] if i < len(args) else True for i in (after + 2, after + 3))
        if isinstance(dropout, int | float) and not isinstance(dropout, bool) and dropout == 0:
            return False
        return train is not False
    return True


def is_effectful(target: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether this call must keep its place among the other effectful ones: it writes, draws, checks or switches.

    `args` and `kwargs` are decoded; references may be any object that is neither None, a bool nor a number.
    """
    kind, traits = LISTED.get(target, ("function", frozenset()))
    if kind == "region" or "effect" in traits or mutated_operands(target, args, kwargs):
        return True
    return "random" in traits and _draws(target, args, kwargs)
