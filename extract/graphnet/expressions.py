"""Expressions of a sample's `forward`, read as syntax: each is a literal or makes rows of the draft."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from extract.graphnet import spelling
from extract.graphnet.makers import MAKERS
from extract.graphnet.problem import SampleError, shown
from extract.graphnet.vocabulary import (
    BARE,
    BINARY,
    COMPARE,
    CONSTANTS,
    FILE,
    MODULES,
    Ref,
    dotted_name,
    leaves,
    refused,
)
from warehouse.graph import operators
from warehouse.graph.literals import dumps, encode_literal
from warehouse.graph.record import Node, RecordError

MAX_DEPTH = 64
#: What an ignored call gives. It is no literal, so a text that goes on to use it is refused.
_NOTHING = object()


@dataclass
class Expressions:
    """Rows that expressions make. `names`: what each name stands for now, a `Ref` or a literal. `constants`: what
    `self.name` may stand for. Without names it reads literals alone."""

    constants: dict[str, Node] = field(default_factory=dict)
    rows: list[Node] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    effects: int = 0
    depth: int = 0

    def append(self, node: Node, where: ast.AST) -> Ref:
        self.rows.append(node)
        self.lines.append(getattr(where, "lineno", 0))
        return Ref(len(self.rows) - 1)

    def value(self, node: ast.expr) -> Any:
        """What an expression stands for: a `Ref` to a (new) row, or a literal."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise refused(node, "an expression nested too deeply")
        try:
            return self.expression(node)
        finally:
            self.depth -= 1

    def expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                if isinstance(value, bytes):
                    raise refused(node, "a literal of bytes")
                return value
            case ast.Name():
                return self.name(node)
            case ast.Tuple(elts=parts):
                return tuple(self.value(p) for p in parts)
            case ast.List(elts=parts):
                return [self.value(p) for p in parts]
            case ast.Dict(keys=keys, values=values) if all(k is not None for k in keys):
                return {self.value(k): self.value(v) for k, v in zip(keys, values, strict=True)}  # type: ignore[arg-type]
            case ast.Slice(lower=low, upper=high, step=step):
                return slice(*(self.value(p) if p is not None else None for p in (low, high, step)))
            case ast.Subscript(value=held, slice=index):
                return self.python("getitem", [self.value(held), self.value(index)], node)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(op, self.value(operand), node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right), node)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARE:
                return self.python(COMPARE[type(op)], [self.value(left), self.value(right)], node)
            case ast.Compare(left=left, ops=[ast.In()], comparators=[right]):
                return self.python("contains", [self.value(right), self.value(left)], node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Call():
                return self.call(node)
        raise refused(node, f"an expression of kind {type(node).__name__}")

    def name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in BARE:
            return BARE[node.id]
        raise refused(node, f"the name {shown(node.id)} stands for nothing here")

    def unary(self, op: ast.unaryop, operand: Any, node: ast.AST) -> Any:
        number = isinstance(operand, int | float | complex) and not isinstance(operand, bool)
        match op:
            case ast.USub():
                return -operand if number else self.python("neg", [operand], node)
            case ast.UAdd():
                return operand if number else self.python("pos", [operand], node)
            case ast.Invert():
                return self.python("invert", [operand], node)
        return self.python("not_", [operand], node)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        if isinstance(left, int | float) and isinstance(right, complex) and type(op) in (ast.Add, ast.Sub):
            return left + right if isinstance(op, ast.Add) else left - right  # how Python prints a complex number
        return self.python(BINARY[type(op)], [left, right], node)

    def attribute(self, node: ast.Attribute) -> Any:
        dotted = dotted_name(node)
        if dotted is not None and dotted.removeprefix("self.") in self.constants and dotted.startswith("self."):
            return self.append(self.constants[dotted.removeprefix("self.")], node)
        if dotted is not None and dotted in CONSTANTS and dotted.split(".")[0] not in self.names:
            return CONSTANTS[dotted]
        if dotted is not None and dotted.split(".")[0] in MODULES and dotted.split(".")[0] not in self.names:
            raise SampleError("operator_not_listed", f"{shown(dotted)} is no known constant", self.place(node))
        return self.read_attribute(self.value(node.value), node.attr, node)

    def read_attribute(self, held: Any, attribute: str, node: ast.AST) -> Any:
        try:
            name = operators.attribute_name(attribute)
        except RecordError as error:
            raise SampleError(error.kind, str(error), self.place(node)) from error
        return self.row("call_function", name, [held], {}, node)

    def call(self, node: ast.Call) -> Any:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise refused(node, "a call with * or **")
        args = [self.value(a) for a in node.args]
        kwargs = {str(k.arg): self.value(k.value) for k in node.keywords}
        dotted = dotted_name(node.func)
        if dotted is not None and dotted.split(".")[0] not in self.names:
            return self.function(dotted, args, kwargs, node)
        if isinstance(node.func, ast.Attribute):
            return self.method(node.func.attr, [self.value(node.func.value), *args], kwargs, node)
        raise refused(node, "a call of something that is neither a function nor a method")

    def function(self, dotted: str, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        if dotted in spelling.IGNORED:
            return _NOTHING
        if dotted in MAKERS:
            return MAKERS[dotted](self, args, kwargs, node)
        if dotted == "getattr" and len(args) == 2 and isinstance(args[1], str) and not kwargs:
            return self.read_attribute(args[0], args[1], node)
        if dotted == "torch.ops.aten.index" and len(args) == 2 and isinstance(args[1], list) and not kwargs:
            index = tuple(slice(None) if i is None else i for i in args[1])  # the operator behind `x[i, j]`
            return self.python("getitem", [args[0], index], node)
        name = spelling.function(dotted)
        if name is None:
            raise SampleError("operator_not_listed", f"{shown(dotted)} is not on the allow-list", self.place(node))
        kind = "call_method" if name.startswith(operators.METHOD) else "call_function"
        return self.row(kind, name, args, kwargs, node)

    def method(self, attribute: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        name = operators.name_of(attribute, "call_method")
        if name is None:
            what = f"{operators.METHOD}{shown(attribute)} is not on the allow-list"
            raise SampleError("operator_not_listed", what, self.place(node))
        return self.row("call_method", name, args, kwargs, node)

    def python(self, function: str, args: list[Any], node: ast.AST) -> Ref:
        """A call of one of Python's operators, which must meet a row: arithmetic on literals is nobody's graph."""
        if not any(isinstance(leaf, Ref) for leaf in leaves(args)):
            raise refused(node, f"operator {function} on literals alone")
        name = spelling.function(f"operator.{function}")
        if name is None:
            raise SampleError("operator_not_listed", f"operator.{function} is not on the allow-list", self.place(node))
        return self.row("call_function", name, args, {}, node)

    def row(self, kind: str, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Ref:
        effect = None
        if operators.is_effectful(name, args, kwargs):
            effect, self.effects = self.effects, self.effects + 1
        data = dumps([self.encoded(a, node) for a in args])
        named = dumps({k: self.encoded(kwargs[k], node) for k in sorted(kwargs)})
        return self.append(Node(kind, name, data, named, value="other", effect=effect), node)

    def encoded(self, value: Any, node: ast.AST) -> Any:
        here = len(self.rows)
        try:
            return encode_literal(value, lambda v: here - v.row if isinstance(v, Ref) else None)
        except (RecordError, TypeError) as error:
            raise refused(node, shown(error)) from error

    @staticmethod
    def place(node: ast.AST) -> str:
        return f"{FILE}:{getattr(node, 'lineno', 0)}"
