"""Calls in a sample's text that make a literal, not a row: devices, slices, sizes, numbers Python cannot spell."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from extract.graphnet.problem import shown
from extract.graphnet.vocabulary import Ref, leaves, refused
from warehouse.graph.literals import encode_literal
from warehouse.graph.record import RecordError

if TYPE_CHECKING:
    from extract.graphnet.expressions import Expressions


def _device(reader: Expressions, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    given = [*args, *(kwargs[k] for k in ("type", "index") if k in kwargs)]
    text = ":".join(str(part) for part in given if part is not None)
    try:
        encode_literal(torch.device(text), lambda v: None)
        return torch.device(text)
    except (RuntimeError, RecordError) as error:
        raise refused(node, f"device({shown(text)})") from error


def _float(reader: Expressions, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    match args:
        case [str() as word] if word.strip("+-").lower() in ("inf", "nan", "infinity"):
            return float(word)
    return reader.row("call_function", "builtins.float", args, kwargs, node)


def _complex(reader: Expressions, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    if len(args) != 2 or kwargs or not all(isinstance(part, int | float) for part in args):
        raise refused(node, "complex takes two numbers")
    return complex(*args)


def _slice(reader: Expressions, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    if not 1 <= len(args) <= 3 or kwargs:
        raise refused(node, "slice takes one to three arguments")
    return slice(*args)


def _size(reader: Expressions, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    if len(args) != 1 or kwargs or not all(type(s) is int or isinstance(s, Ref) for s in leaves(args)):
        raise refused(node, "torch.Size takes one list of sizes")
    known = all(type(s) is int for s in args[0])
    return torch.Size(args[0]) if known else tuple(args[0])  # a record's size is all numbers


#: Calls that make a literal, not a row.
MAKERS: dict[str, Callable[[Expressions, list[Any], dict[str, Any], ast.Call], Any]] = {
    "device": _device,
    "torch.device": _device,
    "slice": _slice,
    "float": _float,
    "complex": _complex,
    "torch.Size": _size,
}
