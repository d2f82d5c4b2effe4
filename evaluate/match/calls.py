"""One operator call in a form that does not depend on how it was spelled.

In goes a call node of a pattern or of a graph, out comes a `Call`: a key shared by function, method, operator and
in-place spellings, and the arguments by parameter name with defaults filled in. `x + y`, `torch.add(x, y)`,
`x.add(other=y)` and `x += y` are one call; so are `x.view(2, -1)` and `x.view((2, -1))`, `x.float()` and
`x.to(torch.float32)`.

Parameter names come from PyTorch's own schemas and Python signatures. Whether two calls that look alike here also
compute alike is not trusted to names: every rewritten site is run against what it replaced
(evaluate/match/equivalence.py).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from evaluate.match.twins import canonical
from warehouse.graph import operators

#: Namespaces whose members of one name compute the same.
_MERGED = ("torch", "torch.Tensor", "torch.nn.functional", "operator", "torch._C._nn")
_OPERATORS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and_": "bitwise_and", "or_": "bitwise_or",
    "xor": "bitwise_xor", "invert": "bitwise_not", "pos": "positive", "iadd": "add_", "isub": "sub_", "imul": "mul_",
    "itruediv": "div_", "ifloordiv": "floor_divide_", "imod": "remainder_", "ipow": "pow_", "imatmul": "matmul_",
    "iand": "bitwise_and_", "ior": "bitwise_or_", "ixor": "bitwise_xor_", "true_divide": "div",
}  # fmt: skip
_CASTS = {
    "float": torch.float32, "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16,
    "int": torch.int32, "long": torch.int64, "short": torch.int16, "bool": torch.bool,
}  # fmt: skip
#: The two operands may change places.
_COMMUTATIVE = frozenset(
    [
        "add",
        "mul",
        "eq",
        "ne",
        "maximum",
        "minimum",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
    ]
)
#: Parameters that change no result. What `inplace` writes is judged by evaluate/match/effects.py.
_IGNORED = frozenset({"inplace", "_stacklevel", "cudnn_enable", "non_blocking"})
_RENAMED = {"input": "self", "self_": "self", "axis": "dim", "keepdims": "keepdim"}
_PROMISES = (torch.contiguous_format, torch.preserve_format)


@dataclass(frozen=True, slots=True)
class Call:
    """key: what is computed. arguments: parameter name -> node, literal, or tuple of them. commutes: self and other."""

    key: str
    arguments: Mapping[str, Any]
    commutes: bool = False


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    type: str
    default: Any
    required: bool
    keyword_only: bool


def call_of(node: fx.Node) -> Call | None:
    """The call of a node; None for placeholders, attributes and outputs."""
    if node.op not in ("call_function", "call_method"):
        return None
    if node.target is getattr:
        return Call(*canonical(f"getattr.{node.args[1]}", {"self": node.args[0]}))
    name = operators.name_of(node.target, node.op)
    if name is None:
        return Call(_foreign(node), _positional(node.args, node.kwargs))
    space, _, short = name.rpartition(".")
    if node.op == "call_function" and operators.LISTED[name][0] == "attribute":  # Dynamo calls the attribute's getter
        return Call(*canonical(f"getattr.{short}", {"self": node.args[0]}))
    if space not in _MERGED:
        return Call(name, _bound(name, short, node) or _positional(node.args, node.kwargs))
    short = _OPERATORS.get(short, short)
    if short.endswith("_") and not short.endswith("__"):
        short = short[:-1]
    if node.op == "call_method" and short in _CASTS and len(node.args) == 1:
        return Call("to", {"self": node.args[0], "dtype": _CASTS[short]})
    if short in ("to", "type") and (cast := _cast(node)) is not None:
        return Call("to", cast)
    if short == "getitem":
        return Call("getitem", {"self": node.args[0], "index": _frozen(node.args[1])})
    bound = _bound(name, short, node) or _positional(node.args, node.kwargs)
    short, bound = canonical(short, bound)
    return Call(short, bound, short in _COMMUTATIVE and {"self", "other"} <= set(bound))


def neutral(name: str, value: Any) -> bool:
    """Whether an argument that only one of two spellings has says nothing: an unset option, alpha=1."""
    return value is None or value is False or (name in ("alpha", "beta") and value == 1)


def spelled(node: fx.Node) -> str:
    """A call as its author would write it."""
    shown = [_shown(a) for a in node.args] + [f"{k}={_shown(v)}" for k, v in node.kwargs.items()]
    if node.op == "call_method":
        return f"{shown[0]}.{node.target}({', '.join(shown[1:])})"[:160]
    if node.op != "call_function":
        return f"{node.name} ({node.op})"
    name = operators.name_of(node.target, node.op) or _foreign(node)
    return f"{name}({', '.join(shown)})"[:160]


def _shown(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_shown, value)) + ")"
    return value.name if isinstance(value, fx.Node) else repr(value)[:40]


def _foreign(node: fx.Node) -> str:
    target: Any = node.target
    if isinstance(target, str):
        return f"method {target}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', repr(target))}"


def _positional(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {**{str(i): _frozen(a) for i, a in enumerate(args)}, **{k: _frozen(v) for k, v in kwargs.items()}}


def _cast(node: fx.Node) -> dict[str, Any] | None:
    """The arguments of `to` and `type` when they name a dtype and nothing else that matters."""
    values = [*node.args[1:], *(v for k, v in node.kwargs.items() if k in ("dtype", "device"))]
    dtypes = [v for v in values if isinstance(v, torch.dtype)]
    others = [v for v in values if isinstance(v, (fx.Node, torch.device, str))]
    if node.kwargs.get("copy") or len(dtypes) != 1 or others:
        return None
    return {"self": node.args[0], "dtype": dtypes[0]}


def _bound(name: str, short: str, node: fx.Node) -> dict[str, Any] | None:
    for strict in (True, False):
        for parameters in _signatures(name, short):
            bound = _bind(parameters, node.args, node.kwargs, strict)
            if bound is not None:
                return bound
    return None


@functools.cache
def _signatures(name: str, short: str) -> tuple[tuple[_Parameter, ...], ...]:
    """The ways to call an operator: one Python signature, or the schemas of its overloads."""
    if not name.startswith((operators.METHOD, "operator.")):
        fn: Any = operators.lookup(name).fn
        dispatched = torch._jit_internal.boolean_dispatched.get(fn)
        if dispatched is not None:
            fn = dispatched["if_false"]
        if isinstance(fn, types.FunctionType):
            return (_of_python(inspect.signature(inspect.unwrap(fn))),)
    packet = getattr(torch.ops.aten, short, None)
    if packet is None:
        return ()
    schemas = [getattr(packet, o)._schema for o in packet.overloads()]
    found = [tuple(_of_schema(a) for a in s.arguments) for s in schemas if not any(a.is_out for a in s.arguments)]
    # Overloads for Python's own numbers and lists, and those for named dimensions, are none of a graph's.
    return tuple(p for p in found if any("Tensor" in a.type for a in p) and not any("Dimname" in a.type for a in p))


def _of_python(signature: inspect.Signature) -> tuple[_Parameter, ...]:
    return tuple(
        _Parameter(
            p.name,
            "",
            None if p.default is p.empty else _frozen(p.default),
            p.default is p.empty,
            p.kind is p.KEYWORD_ONLY,
        )
        for p in signature.parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )


def _of_schema(argument: Any) -> _Parameter:
    default = _frozen(argument.default_value) if argument.has_default_value() else None
    return _Parameter(
        argument.name, str(argument.real_type), default, not argument.has_default_value(), argument.kwarg_only
    )


def _bind(
    parameters: tuple[_Parameter, ...], args: Sequence[Any], kwargs: Mapping[str, Any], strict: bool
) -> dict[str, Any] | None:
    """Arguments by parameter name, None when they do not fit. `strict`: a number is no tensor."""
    positional = [p for p in parameters if not p.keyword_only]
    args = list(args)
    if len(args) > len(positional):
        # view(2, 3), permute(0, 2, 1): the last positional parameter takes all that is left.
        if not positional or "List[" not in positional[-1].type:
            return None
        args = [*args[: len(positional) - 1], tuple(args[len(positional) - 1 :])]
    names = {_RENAMED.get(k, k): v for k, v in kwargs.items()}
    bound: dict[str, Any] = {}
    for i, p in enumerate(parameters):
        name = _RENAMED.get(p.name, p.name)
        if i < len(args) and not p.keyword_only:
            if name in names:
                return None
            value = args[i]
        elif name in names:
            value = names.pop(name)
        elif p.required:
            return None
        else:
            value = p.default
        if p.type and value is not p.default and not _fits(value, p.type, strict):
            return None
        if name not in _IGNORED and not (name == "memory_format" and (value == 0 or value in _PROMISES)):
            bound[name] = _frozen(value if not _wants_list(p.type, value) else (value,))
    return bound if not set(names) else None


def _wants_list(type: str, value: Any) -> bool:
    return "List[" in type and not isinstance(value, (tuple, list)) and value is not None


def _fits(value: Any, type: str, strict: bool) -> bool:
    if type.startswith("Optional["):
        return value is None or _fits(value, type[len("Optional[") : -1], strict)
    if type.startswith("List["):
        inner = type[len("List[") : -1]
        if isinstance(value, (tuple, list)):
            return all(_fits(v, inner, strict) for v in value)
        return inner in ("int", "SymInt") and _fits(value, inner, strict)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if type == "Tensor":
        return isinstance(value, fx.Node) or (not strict and isinstance(value, (int, float)))
    if type in ("number", "float"):
        return isinstance(value, (fx.Node, bool)) or number
    if type in ("int", "SymInt"):
        return isinstance(value, fx.Node) or (number and isinstance(value, int))
    kinds: dict[str, Any] = {
        "bool": (bool, fx.Node), "ScalarType": torch.dtype, "Device": (torch.device, str), "str": str,
        "MemoryFormat": torch.memory_format, "Layout": torch.layout,
    }  # fmt: skip
    return type in kinds and isinstance(value, kinds[type])


def _frozen(value: Any) -> Any:
    """Lists as tuples, slices as they are, nested ones too."""
    if isinstance(value, slice):
        return slice(_frozen(value.start), _frozen(value.stop), _frozen(value.step))
    return tuple(map(_frozen, value)) if isinstance(value, (tuple, list)) else value
