"""A GraphRecord as `model.py`: a class `GraphModule` whose forward takes every weight and input as an argument.

In goes a record, out comes text that PyTorch runs and `extract.graphnet.program` reads back into the same graph. What
comes from data is reduced to identifiers, or quoted as Python quotes it, so nothing in a record can leave its place.
Calls that write through Python's operators are printed as calls (`operator.iadd(a, b)`): a statement `a += b` would
rebind `a`, and a later reader of the old value could not be told from one of the new.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from warehouse.graph.constants import decode_tensor
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graph.validate import validate
from warehouse.graphnet.layout import CLASS

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and_": "&", "or_": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_ANNOTATIONS = {"parameter": "torch.nn.parameter.Parameter", "symbol": "torch.SymInt"}
_REFERENCE = re.compile(r"%([1-9]\d{0,8})")
#: Names that mean something else in the text.
_RESERVED = {
    "self", "torch", "torchvision", "operator", "math", "device", "inf", "slice", "float", "complex", "getattr",
    "abs", "bool", "divmod", "int", "max", "min", "pow", "round", "sum", "Ellipsis", "super", "print",
}  # fmt: skip
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Printed:
    """`text` of model.py, and the argument's name for each slot."""

    text: str
    arguments: tuple[str, ...]


def model_text(record: GraphRecord) -> Printed:
    """Print `record`.

    Raises RecordError: `graph_not_exportable` for what the layout cannot say (nested graphs, symbolic sizes), or what
    `warehouse.graph.validate` raises.
    """
    validate(record)
    if record.bodies:
        raise RecordError("graph_not_exportable", "the graph holds nested graphs, which the layout has no place for")
    if any(node.expr for node in record.nodes):
        raise RecordError("graph_not_exportable", "the graph has symbolic sizes, which the layout states as plain ones")
    names = _names(record)
    placeholders = record.placeholders()
    lines = list(_statements(record, names))
    constants = list(_constants(record, names))
    body = "\n".join(f"        {line}" for line in lines)
    signature = "".join(
        f"        {names[row]}: {_ANNOTATIONS.get(str(node.role), 'torch.Tensor')},\n" for row, node in placeholders
    )
    holds = ""
    if constants:
        kept = "\n".join(f"        {line}" for line in constants)
        holds = f"    def __init__(self):\n        super().__init__()\n{kept}\n\n"
    text = (
        f"{_imports(body)}\n\nclass {CLASS}(torch.nn.Module):\n{holds}"
        f"    def forward(\n        self,\n{signature}    ):\n{body}\n"
    )
    return Printed(text, tuple(names[row] for row, _ in placeholders))


def argument_name(node: Node) -> str:
    """The name that GraphNet's extractor would give a placeholder, from its path and role."""
    path = re.sub(r"[^0-9A-Za-z_.]+", "_", node.name or "").strip(".") or "value"
    if node.role == "symbol":
        name = path.replace(".", "_")
    elif node.role in ("parameter", "buffer"):
        *modules, leaf = path.split(".")
        inside = "".join(f"modules_{part}_" for part in modules)
        name = f"L_self_{inside}{node.role}s_{leaf}_"
    else:
        name = f"L_{path.replace('.', '_')}_"
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME // 2]}_{name[-MAX_NAME // 2 :]}"
    return f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) or name.startswith("__") else name


def _imports(body: str) -> str:
    lines = ["import torch"]
    if re.search(r"\bdevice\(type=", body):
        lines.append("from torch import device")
    if re.search(r"(?<![\w'\"])inf\b", body):
        lines.append("from torch import inf")
    for module in ("operator", "math"):
        if f"{module}." in body:
            lines.append(f"import {module}")
    if "torch.ops.torchvision." in body:
        lines.append("import torchvision")
    for module in ("torch._functorch.predispatch", "torch._functorch.vmap"):
        if f"{module}." in body:
            lines.append(f"import {module}")
    return "\n".join(lines) + "\n"


def _names(record: GraphRecord) -> list[str]:
    """A distinct name for every row: arguments first, so that theirs stay as the layout has them."""
    names: dict[int, str] = {}
    taken = set(_RESERVED)
    used: dict[str, int] = {}
    calls = [(row, node) for row, node in enumerate(record.nodes) if node.op != "placeholder"]
    for row, node in [*record.placeholders(), *calls]:
        stem = argument_name(node) if node.op == "placeholder" else _stem(node)
        name = stem
        while name in taken:
            used[stem] = used.get(stem, 0) + 1
            name = f"{stem}_{used[stem]}"
        taken.add(name)
        names[row] = name
    return [names[row] for row in range(len(record.nodes))]


def _stem(node: Node) -> str:
    if node.op == "constant":
        return "_tensor_constant"
    last = re.sub(r"[^0-9A-Za-z_]+", "_", node.target.rsplit(".", 1)[-1]).strip("_")[:60].lower() or "value"
    return f"{last}_" if last in _RESERVED or keyword.iskeyword(last) or last[0].isdigit() else last


def _statements(record: GraphRecord, names: list[str]) -> Iterator[str]:
    last = _last_uses(record)
    for row, node in enumerate(record.nodes):
        if node.op == "placeholder":
            continue
        if node.op == "constant":
            yield f"{names[row]} = self.{names[row]}"
        elif node.op == "output":
            args, _ = _arguments(node, row, names)
            yield f"return {args[0]}"
        else:
            yield f"{names[row]} = {_call(node, row, names)}"
            done = [names[used] for used in last.get(row, ())]
            if row not in last.get(-1, ()):  # nobody reads it
                done.append(names[row])
            if done:
                yield " = ".join([*done, "None"])


def _last_uses(record: GraphRecord) -> dict[int, list[int]]:
    """row -> rows that it reads last, in order; -1 -> every row that is read at all."""
    final: dict[int, int] = {}
    for row, node in enumerate(record.nodes):
        for match in re.finditer(r'"%([1-9]\d*)"', node.args + node.kwargs):
            if 0 <= row - int(match.group(1)) < row:
                final[row - int(match.group(1))] = row
    found: dict[int, list[int]] = {-1: list(final)}
    for used, row in sorted(final.items()):
        found.setdefault(row, []).append(used)
    return found


def _constants(record: GraphRecord, names: list[str]) -> Iterator[str]:
    for row, node in enumerate(record.nodes):
        if node.op == "constant":
            tensor = decode_tensor(node.args)
            if "float8" in str(node.dtype) or node.dtype == "complex32":
                raise RecordError("graph_not_exportable", f"a constant of dtype {node.dtype} has no literal")
            values = ", ".join(_number(v) for v in tensor.reshape(-1).tolist())
            shape = ", ".join(str(s) for s in tensor.shape)
            made = f"torch.tensor([{values}], dtype=torch.{node.dtype}).reshape([{shape}])"
            yield f"self.register_buffer({names[row]!r}, {made})"


def _call(node: Node, row: int, names: list[str]) -> str:
    args, kwargs = _arguments(node, row, names)
    named = [f"{key}={value}" for key, value in kwargs.items()]
    short = node.target.rsplit(".", 1)[-1]
    if node.target.startswith("operator.") and not kwargs:
        if short in _INFIX and len(args) == 2:
            return f"{_operand(args[0])} {_INFIX[short]} {_operand(args[1])}"
        if short == "getitem" and len(args) == 2 and args[0].isidentifier():
            return f"{args[0]}[{args[1]}]"
        if short == "neg" and args[0].isidentifier():
            return f"-{args[0]}"
    if node.target.startswith("torch.Tensor.") and args:
        if node.op == "call_function":  # an attribute
            return f"{args[0]}.{short}" if not short.startswith("_") else f"getattr({args[0]}, {short!r})"
        return f"{args[0]}.{short}({', '.join([*args[1:], *named])})"
    return f"{node.target.removeprefix('builtins.')}({', '.join([*args, *named])})"


def _operand(text: str) -> str:
    return text if text.isidentifier() or re.fullmatch(r"\d+(\.\d+)?", text) else f"({text})"


def _arguments(node: Node, row: int, names: list[str]) -> tuple[list[str], dict[str, str]]:
    def show(value: Any) -> str:
        return _shown(value, row, names)

    return [show(v) for v in json.loads(node.args)], {k: show(v) for k, v in json.loads(node.kwargs).items()}


def _shown(value: Any, row: int, names: list[str]) -> str:
    """One argument in its JSON form (`warehouse.graph.literals`) as Python writes it; validated before."""
    if isinstance(value, str):
        match = _REFERENCE.fullmatch(value)
        return names[row - int(match.group(1))] if match else repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_shown(v, row, names) for v in value) + "]"
    if not isinstance(value, dict):
        return _number(value) if isinstance(value, float) else repr(value)
    ((tag, held),) = value.items()
    if tag == "str":
        return repr(held)
    if tag == "tuple":
        parts = [_shown(v, row, names) for v in held]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if tag == "size":
        return f"torch.Size([{', '.join(_shown(v, row, names) for v in held)}])"
    if tag == "slice":
        return f"slice({', '.join(_shown(v, row, names) for v in held)})"
    if tag == "ellipsis":
        return "Ellipsis"
    if tag == "dict":
        return "{" + ", ".join(f"{_shown(k, row, names)}: {_shown(v, row, names)}" for k, v in held) + "}"
    if tag == "complex":
        return f"complex({', '.join(_shown(v, row, names) for v in held)})"
    if tag == "float":
        return _number(float(held))
    if tag == "device":
        kind, _, index = str(held).partition(":")
        return f"device(type={kind!r}, index={int(index)})" if index else f"device(type={kind!r})"
    if tag in ("dtype", "layout", "memory_format"):
        return f"torch.{held}"
    raise RecordError("graph_not_exportable", f"an argument of kind {tag[:40]!r}")


def _number(value: Any) -> str:
    """A number so that Python reads the same one; infinities by the name that the text imports."""
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    if isinstance(value, float) and value != value:
        return "float('nan')"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return repr(value)
