"""The statements of a sample's `forward`, read as syntax to a draft GraphRecord."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from extract.graphnet.expressions import Expressions
from extract.graphnet.problem import shown
from extract.graphnet.vocabulary import INPLACE, Ref, dotted_name, refused
from warehouse.graph.literals import dumps
from warehouse.graph.record import GraphRecord, Node

#: Statements of one forward; the largest published sample has 28,464 lines.
MAX_STATEMENTS = 400_000
MAX_NAME = 4096


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of `forward`: its name, and its annotation as dotted text (`torch.SymInt`), empty without one."""

    name: str
    annotation: str


@dataclass(frozen=True, slots=True)
class Program:
    """`draft`: placeholders in call order, then the calls, `value` being `other` everywhere. `lines[row]`: the line of
    model.py that row comes from."""

    parameters: tuple[Parameter, ...]
    draft: GraphRecord
    lines: tuple[int, ...]


class Forward(Expressions):
    """Walks one forward; names that are cleared stand for nothing afterwards."""

    def __init__(self, forward: ast.FunctionDef, constants: dict[str, Node]):
        super().__init__(constants)
        self.forward = forward

    def read(self) -> Program:
        parameters = tuple(self.parameters())
        for slot, parameter in enumerate(parameters):
            self.names[parameter.name] = Ref(len(self.rows))
            self.append(Node("placeholder", value="other", name=parameter.name, role="input", slot=slot), self.forward)
        if len(self.forward.body) > MAX_STATEMENTS:
            raise refused(self.forward, f"more than {MAX_STATEMENTS} statements")
        for statement in self.forward.body:
            if self.rows and self.rows[-1].op == "output":
                raise refused(statement, "a statement after return")
            self.statement(statement)
        if not self.rows or self.rows[-1].op != "output":
            raise refused(self.forward, "forward returns nothing")
        return Program(parameters, GraphRecord(tuple(self.rows)), tuple(self.lines))

    def parameters(self) -> Iterator[Parameter]:
        given = self.forward.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
            raise refused(self.forward, "forward takes plain positional arguments alone")
        if not given.args or given.args[0].arg != "self":
            raise refused(self.forward, "forward has no self")
        seen = {"self"}
        for argument in given.args[1:]:
            if argument.arg in seen or len(argument.arg) > MAX_NAME:
                raise refused(argument, f"argument {shown(argument.arg)} is repeated or too long")
            seen.add(argument.arg)
            annotation = argument.annotation
            text = (dotted_name(annotation) or "") if annotation is not None else ""
            yield Parameter(argument.arg, text)

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=ast.Constant(value=None)) if all(
                isinstance(t, ast.Name) for t in targets
            ):
                for target in targets:
                    self.names.pop(target.id, None)  # type: ignore[attr-defined]
            case ast.Assign(targets=targets, value=value):
                made = self.value(value)
                for target in targets:
                    self.bind(target, made)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.bind(target, self.value(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                inplace = INPLACE[type(op)]
                self.names[name] = self.python(inplace, [self.name(target), self.value(value)], statement)
            case ast.Expr(value=value):
                self.value(value)
            case ast.Delete(targets=targets) if all(isinstance(t, ast.Name) for t in targets):
                for target in targets:
                    self.names.pop(target.id, None)  # type: ignore[attr-defined]
            case ast.Return(value=value):
                made = self.value(value) if value is not None else None
                self.append(Node("output", value="none", args=dumps([self.encoded(made, statement)])), statement)
            case ast.Pass():
                pass
            case _:
                raise refused(statement, f"a statement of kind {type(statement).__name__}")

    def bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.names[name] = value
            case ast.Subscript(value=held, slice=index):
                self.python("setitem", [self.value(held), self.value(index), value], target)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if not any(isinstance(p, ast.Starred) for p in parts):
                for i, part in enumerate(parts):
                    if isinstance(value, Ref):
                        self.bind(part, self.python("getitem", [value, i], target))
                    elif isinstance(value, tuple | list) and len(value) == len(parts):
                        self.bind(part, value[i])
                    else:
                        raise refused(target, "an unpacking that does not fit")
            case _:
                raise refused(target, f"an assignment to {type(target).__name__}")
