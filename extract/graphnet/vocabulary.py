"""What a sample's text may name: modules, constants, and Python's operators; and the few words its readers share."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from extract.graphnet.problem import SampleError
from warehouse.graph.literals import DTYPES, LAYOUTS, MEMORY_FORMATS
from warehouse.graphnet.layout import MODEL

FILE = MODEL
#: Modules that a sample may name, and what it may take from torch and math by bare name.
MODULES = {"torch", "math", "operator", "_operator", "builtins", "torchvision"}
FROM = {"torch": {"device", "inf", "nan"}, "math": {"inf", "nan"}}
_NUMBERS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e}
BARE: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "Ellipsis": Ellipsis}
CONSTANTS: dict[str, Any] = {
    **{f"torch.{name}": dtype for name, dtype in DTYPES.items()},
    **{f"torch.{name}": layout for name, layout in LAYOUTS.items()},
    **{f"torch.{name}": form for name, form in MEMORY_FORMATS.items()},
    **{f"{module}.{name}": number for module in ("torch", "math") for name, number in _NUMBERS.items()},
    "torch.float": torch.float32,
    "torch.double": torch.float64,
    "torch.half": torch.float16,
    "torch.long": torch.int64,
    "torch.int": torch.int32,
    "torch.short": torch.int16,
}
BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
INPLACE = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.MatMult: "imatmul", ast.LShift: "ilshift", ast.RShift: "irshift",
    ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor",
}  # fmt: skip
COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "is_",
    ast.IsNot: "is_not",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a row."""

    row: int


def refused(node: ast.AST, what: str) -> SampleError:
    return SampleError("syntax_unsupported", what, f"{FILE}:{getattr(node, 'lineno', 0)}")


def dotted_name(node: ast.expr) -> str | None:
    """`torch.nn.functional.relu` of such an expression; None of any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 16:
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, list | tuple):
        for value in values:
            yield from leaves(value)
    elif isinstance(values, slice):
        yield from leaves((values.start, values.stop, values.step))
    else:
        yield values
