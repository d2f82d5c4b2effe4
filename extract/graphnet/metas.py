"""`weight_meta.py` and `input_meta.py` of a sample, read as syntax: what each argument of forward was.

In: text with one class an argument, whose body assigns literals. Out: a `Meta` each. Values never go through Python's
own reading of literals: the few forms below are all there is, and anything else is a SampleError that names the line.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from extract.graphnet.problem import SampleError, shown
from warehouse.graph.inputs import MAX_ELEMENTS
from warehouse.graph.literals import DTYPES

#: Values that a `data` list may hold; the layout's own writer stops below 64.
MAX_DATA = 65_536
MAX_DIMENSIONS = 64
_LAYOUT_DEVICES = ("cuda", "cpu", "meta")


@dataclass(frozen=True, slots=True)
class Meta:
    """One argument. mean, std: of the real tensor, to 3 decimals, None where it had none. low, high: its extremes.
    data: all its values, flat. line: where its class begins. extra: further attributes, by name."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    device: str
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    data: tuple[float, ...] | None
    line: int
    extra: Mapping[str, Any]


def parse(text: str, file: str) -> dict[str, Meta]:
    """The metas of a file by argument name. Raises SampleError("meta_invalid") naming the line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except SyntaxError as error:
        raise SampleError("meta_invalid", f"not Python: {shown(error.msg)}", f"{file}:{error.lineno}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SampleError("meta_invalid", f"not readable as Python: {shown(error)}", file) from error
    found: dict[str, Meta] = {}
    for statement in module.body:
        place = f"{file}:{statement.lineno}"
        if not isinstance(statement, ast.ClassDef) or statement.decorator_list or statement.keywords:
            raise SampleError("meta_invalid", "only plain classes may stand here", place)
        meta = _meta(_attributes(statement, file), statement.lineno, place)
        if meta.name in found:
            raise SampleError("meta_invalid", f"{shown(meta.name)} is described twice", place)
        found[meta.name] = meta
    return found


def _attributes(described: ast.ClassDef, file: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for line in described.body:
        place = f"{file}:{line.lineno}"
        match line:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                try:
                    attributes[name] = _literal(value, 0)
                except (ValueError, RecursionError) as error:
                    raise SampleError("meta_invalid", f"{shown(name)} is no plain literal", place) from error
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise SampleError("meta_invalid", f"a statement of kind {type(line).__name__}", place)
    return attributes


def _literal(node: ast.expr, depth: int) -> Any:
    if depth > 8:
        raise ValueError("nested too deeply")
    match node:
        case ast.Constant(value=None | bool() | int() | float() | complex() | str() as value):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_literal(p, depth + 1) for p in parts]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() | complex() as value)):
            return -value
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=complex() as imaginary)):
            return _literal(left, depth + 1) + imaginary
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=complex() as imaginary)):
            return _literal(left, depth + 1) - imaginary
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as word)], keywords=[]):
            if word.strip("+-").lower() in ("inf", "infinity", "nan"):
                return float(word)
    raise ValueError(type(node).__name__)


def _meta(given: dict[str, Any], line: int, place: str) -> Meta:
    def refuse(what: str) -> SampleError:
        return SampleError("meta_invalid", f"{shown(given.get('name'))}: {what}", place)

    name, dtype, device = given.pop("name", None), given.pop("dtype", None), given.pop("device", "cpu")
    if not isinstance(name, str) or not name:
        raise refuse("a name is missing")
    dtype = dtype.removeprefix("torch.") if isinstance(dtype, str) else None
    dtype = {"float": "float32", "double": "float64", "half": "float16", "long": "int64"}.get(dtype or "", dtype)
    if dtype not in DTYPES:
        raise refuse(f"unknown dtype {shown(dtype)}")
    device = device.split(":")[0] if isinstance(device, str) else None
    if device not in _LAYOUT_DEVICES:
        raise refuse(f"unknown device {shown(device)}")
    shape = given.pop("shape", None)
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or any(type(s) is not int or s < 0 for s in shape):
        raise refuse(f"shape {shown(shape)} is no list of sizes")
    if math.prod(shape) > MAX_ELEMENTS:
        raise refuse(f"shape {shown(shape)} has more than {MAX_ELEMENTS} elements")
    numbers = {key: given.pop(key, None) for key in ("mean", "std", "min_val", "max_val")}
    for key, value in numbers.items():
        if value is not None and (not isinstance(value, int | float) or abs(value) > 1e308 and math.isfinite(value)):
            raise refuse(f"{key} is no number")
    data = given.pop("data", None)
    if data is not None:
        if not isinstance(data, list) or len(data) != math.prod(shape) or len(data) > MAX_DATA:
            raise refuse(f"data does not fill shape {shown(shape)}, or is longer than {MAX_DATA}")
        if any(not isinstance(v, int | float) or abs(v) >= 2**63 and isinstance(v, int) for v in data):
            raise refuse("data holds something that is no number")
    floats = {key: float(value) if value is not None else None for key, value in numbers.items()}
    return Meta(
        name,
        dtype,
        tuple(shape),
        device,
        floats["mean"],
        floats["std"],
        floats["min_val"],
        floats["max_val"],
        tuple(data) if data is not None else None,
        line,
        given,
    )
