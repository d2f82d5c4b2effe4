"""`model.py` of a sample, read as syntax, to a draft GraphRecord.

In: the text of a module with one class `GraphModule` and its `forward`, as torch.fx prints one: a flat run of
assignments. Out: rows whose targets come from the allow-list and whose arguments are plain literals and references.
What the values are (dtype, shape) is not in the text: `extract.graphnet.complete` finds out.

The text is parsed by `ast` and never compiled. A name is a key of tables made here, so a sample can only say what a
record can hold; anything else is a SampleError that names the line.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from extract.graphnet import spelling
from extract.graphnet.problem import SampleError, shown
from warehouse.graph import operators
from warehouse.graph.constants import MAX_BYTES, encode_tensor
from warehouse.graph.literals import DTYPE_NAMES, DTYPES, LAYOUTS, MEMORY_FORMATS, dumps, encode_literal
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graphnet.layout import CLASS, MODEL

FILE = MODEL
#: Statements of one forward; the largest published sample has 28,464 lines.
MAX_STATEMENTS = 400_000
MAX_NAME = 4096
MAX_DEPTH = 64
#: Modules that a sample may name, and what it may take from torch and math by bare name.
_MODULES = {"torch", "math", "operator", "_operator", "builtins", "torchvision"}
_FROM = {"torch": {"device", "inf", "nan"}, "math": {"inf", "nan"}}
_NUMBERS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e}
_BARE: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "Ellipsis": Ellipsis}
_CONSTANTS: dict[str, Any] = {
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
_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
_INPLACE = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.MatMult: "imatmul", ast.LShift: "ilshift", ast.RShift: "irshift",
    ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "is_",
    ast.IsNot: "is_not",
}  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class _Ref:
    """The value of a row."""

    row: int


#: What an ignored call gives. It is no literal, so a text that goes on to use it is refused.
_NOTHING = object()


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
            raise _refused(statement, "only imports of torch and math and the class may stand at module level")
    if list(classes) != [CLASS]:
        raise SampleError("syntax_unsupported", f"one class {CLASS} is expected, not {shown(list(classes))}", FILE)
    forward, constants = _members(classes[CLASS])
    return _Reader(forward, constants).read()


def _members(found: ast.ClassDef) -> tuple[ast.FunctionDef, dict[str, Node]]:
    """forward, and the constants that `__init__` registers, by name."""
    forward = None
    constants: dict[str, Node] = {}
    if found.decorator_list or found.keywords:
        raise _refused(found, "a class with decorators or keywords")
    for member in found.body:
        if isinstance(member, ast.FunctionDef) and member.name == "forward" and not member.decorator_list:
            forward = member
        elif isinstance(member, ast.FunctionDef) and member.name == "__init__" and not member.decorator_list:
            constants.update(_registered(member))
        elif not _is_docstring(member) and not isinstance(member, ast.Pass):
            raise _refused(member, "a class member besides forward and __init__")
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
            ) if _dotted(made.func) == "torch.tensor":
                yield name, _constant(values, dtype, shape, statement)
            case _:
                raise _refused(statement, "__init__ may register constants and nothing else")


def _constant(values: ast.expr, dtype: ast.expr, shape: ast.expr, statement: ast.stmt) -> Node:
    reader = _Reader(ast.FunctionDef("", lineno=statement.lineno), {})  # for literals alone: it knows no names
    numbers, kind, sizes = reader.value(values), reader.value(dtype), reader.value(shape)
    if reader.rows or not isinstance(kind, torch.dtype) or len(numbers) > MAX_BYTES:
        raise _refused(statement, "a constant that is no plain list of numbers, or too long")
    try:
        tensor = torch.tensor(numbers, dtype=kind).reshape(sizes)
        return Node("constant", args=encode_tensor(tensor), dtype=DTYPE_NAMES[kind], shape=tuple(tensor.shape))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:  # a RecordError is a ValueError
        raise _refused(statement, f"a constant that is no tensor: {shown(error)}") from error


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_harmless_import(statement: ast.stmt) -> bool:
    """An import of what `_Reader` knows by name. Nothing is imported; others could mean anything."""
    if isinstance(statement, ast.Import):
        return all(
            (a.name in _MODULES or a.name.startswith("torch.")) and a.asname in (None, a.name) for a in statement.names
        )
    if isinstance(statement, ast.ImportFrom):
        known = _FROM.get(statement.module or "", set())
        return statement.level == 0 and all(a.name in known and a.asname is None for a in statement.names)
    return False


def _refused(node: ast.AST, what: str) -> SampleError:
    return SampleError("syntax_unsupported", what, f"{FILE}:{getattr(node, 'lineno', 0)}")


@dataclass
class _Reader:
    """Walks one forward. `names`: what each name stands for now, a `_Ref` or a literal; cleared names are gone.
    `constants`: what `self.name` may stand for."""

    forward: ast.FunctionDef
    constants: dict[str, Node]
    rows: list[Node] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    effects: int = 0
    depth: int = 0

    def read(self) -> Program:
        parameters = tuple(self.parameters())
        for slot, parameter in enumerate(parameters):
            self.names[parameter.name] = _Ref(len(self.rows))
            self.append(Node("placeholder", value="other", name=parameter.name, role="input", slot=slot), self.forward)
        if len(self.forward.body) > MAX_STATEMENTS:
            raise _refused(self.forward, f"more than {MAX_STATEMENTS} statements")
        for statement in self.forward.body:
            if self.rows and self.rows[-1].op == "output":
                raise _refused(statement, "a statement after return")
            self.statement(statement)
        if not self.rows or self.rows[-1].op != "output":
            raise _refused(self.forward, "forward returns nothing")
        return Program(parameters, GraphRecord(tuple(self.rows)), tuple(self.lines))

    def parameters(self) -> Iterator[Parameter]:
        given = self.forward.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
            raise _refused(self.forward, "forward takes plain positional arguments alone")
        if not given.args or given.args[0].arg != "self":
            raise _refused(self.forward, "forward has no self")
        seen = {"self"}
        for argument in given.args[1:]:
            if argument.arg in seen or len(argument.arg) > MAX_NAME:
                raise _refused(argument, f"argument {shown(argument.arg)} is repeated or too long")
            seen.add(argument.arg)
            annotation = argument.annotation
            text = (_dotted(annotation) or "") if annotation is not None else ""
            yield Parameter(argument.arg, text)

    def append(self, node: Node, where: ast.AST) -> _Ref:
        self.rows.append(node)
        self.lines.append(getattr(where, "lineno", 0))
        return _Ref(len(self.rows) - 1)

    # ------------------------------------------------------------------ statements

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
                inplace = _INPLACE[type(op)]
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
                raise _refused(statement, f"a statement of kind {type(statement).__name__}")

    def bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.names[name] = value
            case ast.Subscript(value=held, slice=index):
                self.python("setitem", [self.value(held), self.value(index), value], target)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if not any(isinstance(p, ast.Starred) for p in parts):
                for i, part in enumerate(parts):
                    if isinstance(value, _Ref):
                        self.bind(part, self.python("getitem", [value, i], target))
                    elif isinstance(value, tuple | list) and len(value) == len(parts):
                        self.bind(part, value[i])
                    else:
                        raise _refused(target, "an unpacking that does not fit")
            case _:
                raise _refused(target, f"an assignment to {type(target).__name__}")

    # ----------------------------------------------------------------- expressions

    def value(self, node: ast.expr) -> Any:
        """What an expression stands for: a `_Ref` to a (new) row, or a literal."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _refused(node, "an expression nested too deeply")
        try:
            return self.expression(node)
        finally:
            self.depth -= 1

    def expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                if isinstance(value, bytes):
                    raise _refused(node, "a literal of bytes")
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
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return self.python(_COMPARE[type(op)], [self.value(left), self.value(right)], node)
            case ast.Compare(left=left, ops=[ast.In()], comparators=[right]):
                return self.python("contains", [self.value(right), self.value(left)], node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Call():
                return self.call(node)
        raise _refused(node, f"an expression of kind {type(node).__name__}")

    def name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in _BARE:
            return _BARE[node.id]
        raise _refused(node, f"the name {shown(node.id)} stands for nothing here")

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
        return self.python(_BINARY[type(op)], [left, right], node)

    def attribute(self, node: ast.Attribute) -> Any:
        dotted = _dotted(node)
        if dotted is not None and dotted.removeprefix("self.") in self.constants and dotted.startswith("self."):
            return self.append(self.constants[dotted.removeprefix("self.")], node)
        if dotted is not None and dotted in _CONSTANTS and dotted.split(".")[0] not in self.names:
            return _CONSTANTS[dotted]
        if dotted is not None and dotted.split(".")[0] in _MODULES and dotted.split(".")[0] not in self.names:
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
            raise _refused(node, "a call with * or **")
        args = [self.value(a) for a in node.args]
        kwargs = {str(k.arg): self.value(k.value) for k in node.keywords}
        dotted = _dotted(node.func)
        if dotted is not None and dotted.split(".")[0] not in self.names:
            return self.function(dotted, args, kwargs, node)
        if isinstance(node.func, ast.Attribute):
            return self.method(node.func.attr, [self.value(node.func.value), *args], kwargs, node)
        raise _refused(node, "a call of something that is neither a function nor a method")

    def function(self, dotted: str, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        if dotted in spelling.IGNORED:
            return _NOTHING
        if dotted in _MAKERS:
            return _MAKERS[dotted](self, args, kwargs, node)
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

    def python(self, function: str, args: list[Any], node: ast.AST) -> _Ref:
        """A call of one of Python's operators, which must meet a row: arithmetic on literals is nobody's graph."""
        if not any(isinstance(leaf, _Ref) for leaf in _leaves(args)):
            raise _refused(node, f"operator {function} on literals alone")
        name = spelling.function(f"operator.{function}")
        if name is None:
            raise SampleError("operator_not_listed", f"operator.{function} is not on the allow-list", self.place(node))
        return self.row("call_function", name, args, {}, node)

    def row(self, kind: str, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> _Ref:
        effect = None
        if operators.is_effectful(name, args, kwargs):
            effect, self.effects = self.effects, self.effects + 1
        data = dumps([self.encoded(a, node) for a in args])
        named = dumps({k: self.encoded(kwargs[k], node) for k in sorted(kwargs)})
        return self.append(Node(kind, name, data, named, value="other", effect=effect), node)

    def encoded(self, value: Any, node: ast.AST) -> Any:
        here = len(self.rows)
        try:
            return encode_literal(value, lambda v: here - v.row if isinstance(v, _Ref) else None)
        except (RecordError, TypeError) as error:
            raise _refused(node, shown(error)) from error

    @staticmethod
    def place(node: ast.AST) -> str:
        return f"{FILE}:{getattr(node, 'lineno', 0)}"


def _dotted(node: ast.expr) -> str | None:
    """`torch.nn.functional.relu` of such an expression; None of any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 16:
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, list | tuple):
        for value in values:
            yield from _leaves(value)
    elif isinstance(values, slice):
        yield from _leaves((values.start, values.stop, values.step))
    else:
        yield values


def _device(reader: _Reader, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    given = [*args, *(kwargs[k] for k in ("type", "index") if k in kwargs)]
    text = ":".join(str(part) for part in given if part is not None)
    try:
        encode_literal(torch.device(text), lambda v: None)
        return torch.device(text)
    except (RuntimeError, RecordError) as error:
        raise _refused(node, f"device({shown(text)})") from error


def _float(reader: _Reader, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    match args:
        case [str() as word] if word.strip("+-").lower() in ("inf", "nan", "infinity"):
            return float(word)
    return reader.row("call_function", "builtins.float", args, kwargs, node)


def _complex(reader: _Reader, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    if len(args) != 2 or kwargs or not all(isinstance(part, int | float) for part in args):
        raise _refused(node, "complex takes two numbers")
    return complex(*args)


def _slice(reader: _Reader, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    if not 1 <= len(args) <= 3 or kwargs:
        raise _refused(node, "slice takes one to three arguments")
    return slice(*args)


def _size(reader: _Reader, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    if len(args) != 1 or kwargs or not all(type(s) is int or isinstance(s, _Ref) for s in _leaves(args)):
        raise _refused(node, "torch.Size takes one list of sizes")
    known = all(type(s) is int for s in args[0])
    return torch.Size(args[0]) if known else tuple(args[0])  # a record's size is all numbers


#: Calls that make a literal, not a row.
_MAKERS: dict[str, Callable[[_Reader, list[Any], dict[str, Any], ast.Call], Any]] = {
    "device": _device,
    "torch.device": _device,
    "slice": _slice,
    "float": _float,
    "complex": _complex,
    "torch.Size": _size,
}
