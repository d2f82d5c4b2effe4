"""`model.py` of a sample, read as syntax, to a draft GraphRecord.

In: the text of a module with one class `GraphModule` and its `forward`, as torch.fx prints one: a flat run of
assignments. Out: rows whose targets come from the allow-list and whose arguments are plain literals and references.
What the values are (dtype, shape) is not in the text: `extract.graphnet.complete` finds out.

The text is parsed by `ast` and never compiled. A name is a key of tables made here, so a sample can only say what a
record can hold; anything else is a SampleError that names the line.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

import torch

from extract.graphnet.expressions import Expressions
from extract.graphnet.forward import Forward, Program
from extract.graphnet.problem import SampleError, shown
from extract.graphnet.vocabulary import FILE, FROM, MODULES, dotted_name, refused
from warehouse.graph.constants import MAX_BYTES, encode_tensor
from warehouse.graph.literals import DTYPE_NAMES
from warehouse.graph.record import Node
from warehouse.graphnet.layout import CLASS


def parse(text: str) -> Program:
    """Read the text of a `model.py`. Raises SampleError(`syntax_unsupported` or `operator_not_listed`)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a stranger's escape sequences look like is not our user's concern
            module = ast.parse(text)
    except SyntaxError as error:
        raise SampleError("syntax_unsupported", f"not Python: {shown(error.msg)}", f"{FILE}:{error.lineno}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SampleError("syntax_unsupported", f"not readable as Python: {shown(error)}", FILE) from error
    try:
        return _program(module)
    except RecursionError as error:
        raise SampleError("syntax_unsupported", "expressions are nested too deeply", FILE) from error


def _program(module: ast.Module) -> Program:
    classes: dict[str, ast.ClassDef] = {}
    for statement in module.body:
        if isinstance(statement, ast.ClassDef):
            classes[statement.name] = statement
        elif not _is_docstring(statement) and not _is_harmless_import(statement):
            raise refused(statement, "only imports of torch and math and the class may stand at module level")
    if list(classes) != [CLASS]:
        raise SampleError("syntax_unsupported", f"one class {CLASS} is expected, not {shown(list(classes))}", FILE)
    forward, constants = _members(classes[CLASS])
    return Forward(forward, constants).read()


def _members(found: ast.ClassDef) -> tuple[ast.FunctionDef, dict[str, Node]]:
    """forward, and the constants that `__init__` registers, by name."""
    forward = None
    constants: dict[str, Node] = {}
    if found.decorator_list or found.keywords:
        raise refused(found, "a class with decorators or keywords")
    for member in found.body:
        if isinstance(member, ast.FunctionDef) and member.name == "forward" and not member.decorator_list:
            forward = member
        elif isinstance(member, ast.FunctionDef) and member.name == "__init__" and not member.decorator_list:
            constants.update(_registered(member))
        elif not _is_docstring(member) and not isinstance(member, ast.Pass):
            raise refused(member, "a class member besides forward and __init__")
    if forward is None:
        raise SampleError("syntax_unsupported", f"{CLASS} has no forward", f"{FILE}:{found.lineno}")
    return forward, constants


def _registered(method: ast.FunctionDef) -> Iterator[tuple[str, Node]]:
    """Constants of an `__init__`: `self.register_buffer("name", torch.tensor([...], dtype=...).reshape([...]))`."""
    for statement in method.body:
        match statement:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"))
            ):
                continue
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="self"), attr="register_buffer"),
                    args=[
                        ast.Constant(value=str() as name),
                        ast.Call(
                            func=ast.Attribute(
                                value=ast.Call(
                                    args=[ast.List() as values], keywords=[ast.keyword(arg="dtype", value=dtype)]
                                ) as made,
                                attr="reshape",
                            ),
                            args=[ast.List() as shape],
                        ),
                    ],
                )
            ) if dotted_name(made.func) == "torch.tensor":
                yield name, _constant(values, dtype, shape, statement)
            case _:
                raise refused(statement, "__init__ may register constants and nothing else")


def _constant(values: ast.expr, dtype: ast.expr, shape: ast.expr, statement: ast.stmt) -> Node:
    reader = Expressions()  # for literals alone: it knows no names
    numbers, kind, sizes = reader.value(values), reader.value(dtype), reader.value(shape)
    if reader.rows or not isinstance(kind, torch.dtype) or len(numbers) > MAX_BYTES:
        raise refused(statement, "a constant that is no plain list of numbers, or too long")
    try:
        tensor = torch.tensor(numbers, dtype=kind).reshape(sizes)
        return Node("constant", args=encode_tensor(tensor), dtype=DTYPE_NAMES[kind], shape=tuple(tensor.shape))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:  # a RecordError is a ValueError
        raise refused(statement, f"a constant that is no tensor: {shown(error)}") from error


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_harmless_import(statement: ast.stmt) -> bool:
    """An import of what the readers know by name. Nothing is imported; others could mean anything."""
    if isinstance(statement, ast.Import):
        return all(
            (a.name in MODULES or a.name.startswith("torch.")) and a.asname in (None, a.name) for a in statement.names
        )
    if isinstance(statement, ast.ImportFrom):
        known = FROM.get(statement.module or "", set())
        return statement.level == 0 and all(a.name in known and a.asname is None for a in statement.names)
    return False
