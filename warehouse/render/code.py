"""A GraphRecord as code that reads like Python: for reading, never for running.

In goes a record, out comes text: one function for the graph, inner functions for nested graphs, names made from
parameter paths and operators, and a comment with dtype and sizes behind each line. Names that come from data are
reduced to identifiers, and strings are quoted as Python quotes them, so nothing in a record can break out of its line.
"""

from __future__ import annotations

import json
import keyword
import re
from typing import Any

from warehouse.graph.record import GraphRecord, Node

_WIDTH = 78
_ATTRIBUTES = {"shape", "dtype", "device", "ndim", "T", "mT", "H", "real", "imag", "is_cuda", "layout", "requires_grad"}
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and_": "&", "or_": "|", "xor": "^",
}  # fmt: skip
_INPLACE = {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "iand": "&=", "ior": "|="}


def code(record: GraphRecord, name: str = "graph") -> str:
    """The text of `record`, ending in a newline. Malformed arguments are shown as they stand, marked with `?`."""
    return "\n".join(_function(record, identifier(name), 0)) + "\n"


def names(record: GraphRecord) -> list[str]:
    """A distinct identifier for each node of the outermost graph, in reading order."""
    taken: set[str] = set()
    used: dict[str, int] = {}
    chosen = []
    for node in record.nodes:
        stem = _stem(node)
        name = stem
        while name in taken:
            used[stem] = used.get(stem, 0) + 1
            name = f"{stem}_{used[stem]}"
        taken.add(name)
        chosen.append(name)
    return chosen


def arguments(node: Node, idx: int, name_of: list[str]) -> tuple[list[str], dict[str, str]]:
    """Positional and keyword arguments of a node as text, references replaced by names."""

    def show(value: Any) -> str:
        return _shown(value, idx, name_of)

    try:
        args, kwargs = json.loads(node.args), json.loads(node.kwargs)
        return [show(value) for value in args], {identifier(key): show(value) for key, value in kwargs.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return [f"? {json.dumps(node.args[:80])}"], {}


def yields(node: Node) -> str:
    """What a node yields, in a word: `float32[1, 64, s0]`, `symint s0*2`, `tuple`."""
    if node.value == "tensor" and node.dtype:
        sizes = node.expr or "[" + ", ".join(map(str, node.shape or ())) + "]"
        return _line(f"{node.dtype}{sizes}")
    if node.value == "tuple" and node.elements:
        try:
            members = json.loads(node.elements)
            texts = [f"{m[0]}{m[1]}" if isinstance(m, list) and len(m) == 2 else "…" for m in members]
            return _line("(" + ", ".join(texts[:4]) + (", …)" if len(texts) > 4 else ")"))
        except (ValueError, TypeError):
            return "tuple"
    return _line(f"{node.value} {node.expr}" if node.expr else node.value)


def identifier(text: str) -> str:
    """`layers.0.weight` -> `layers_0_weight`: letters, digits and underscores only, never a keyword."""
    name = re.sub(r"[^0-9A-Za-z_]+", "_", text)[:80].strip("_") or "value"
    return f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name


def _function(record: GraphRecord, name: str, depth: int) -> list[str]:
    pad = "    " * depth
    body = pad + "    "
    name_of = names(record)
    lines = [f"{pad}def {name}("]
    for idx, node in record.placeholders():
        about = [yields(node), *([node.role] if node.role else [])]
        if node.name and identifier(node.name) == name_of[idx] != node.name:
            about.append(_line(node.name))
        lines.append(_commented(f"{body}{name_of[idx]},", ", ".join(about)))
    lines.append(f"{pad}):")
    for i, nested in enumerate(record.bodies):
        lines += [*_function(nested, f"body_{i}", depth + 1), ""]
    for idx, node in enumerate(record.nodes):
        if node.op == "placeholder":
            continue
        if node.op == "output":
            args, _ = arguments(node, idx, name_of)
            lines.append(f"{body}return {', '.join(args)}")
            continue
        effect = f", effect {node.effect}" if node.effect is not None else ""
        lines.append(_commented(f"{body}{name_of[idx]} = {_call(node, idx, name_of)}", yields(node) + effect))
    return lines


def _call(node: Node, idx: int, name_of: list[str]) -> str:
    if node.op == "get_attr":
        return identifier(node.target)
    args, kwargs = arguments(node, idx, name_of)
    if node.op == "constant":
        return f"constant({', '.join(args)})"[:400]
    # The underscores of a target say what it does (`relu_`, `__and__`): they stay.
    target = re.sub(r"[^0-9A-Za-z_.]+", "_", node.target)[:200] or "unknown"
    short = target.rsplit(".", 1)[-1]
    if target.startswith(("operator.", "_operator.")):
        if short in _INFIX and len(args) == 2 and not kwargs:
            return f"{args[0]} {_INFIX[short]} {args[1]}"
        if short == "getitem" and len(args) == 2:
            index = args[1]
            return f"{args[0]}[{index[1:-1] if index.startswith('(') and len(index) > 2 else index}]"
        if short in _INPLACE and len(args) == 2:
            return f"({args[0]} {_INPLACE[short]} {args[1]})"
    named = [f"{key}={value}" for key, value in kwargs.items()]
    if target.startswith("torch.Tensor.") and args:
        if short in _ATTRIBUTES and len(args) == 1 and not kwargs:
            return f"{args[0]}.{short}"
        return f"{args[0]}.{short}({', '.join([*args[1:], *named])})"
    public = target.removeprefix("torch.nn.functional.") if target.startswith("torch.nn.functional.") else target
    prefix = "F." if public != target else ""
    return f"{prefix}{public}({', '.join([*args, *named])})"


def _shown(value: Any, idx: int, name_of: list[str]) -> str:
    """One decoded JSON argument (see `warehouse.graph.literals`) as Python would write it."""
    if isinstance(value, str):
        match = re.fullmatch(r"%([1-9]\d{0,8})", value)
        if match and int(match.group(1)) <= idx:
            return name_of[idx - int(match.group(1))]
        return f"? {value[:80]!r}"
    if isinstance(value, list):
        return "[" + ", ".join(_shown(v, idx, name_of) for v in value) + "]"
    if not isinstance(value, dict):
        return repr(value)
    if len(value) != 1:
        return f"? {json.dumps(value)[:80]}"
    ((tag, held),) = value.items()
    if tag == "str":
        return repr(held)
    if tag in ("tuple", "size") and isinstance(held, list):
        parts = [_shown(v, idx, name_of) for v in held]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if tag == "slice" and isinstance(held, list) and len(held) == 3:
        first, last, step = ("" if v is None else _shown(v, idx, name_of) for v in held)
        return f"{first}:{last}" + (f":{step}" if step else "")
    if tag == "ellipsis":
        return "..."
    if tag == "dict" and isinstance(held, list):
        return "{" + ", ".join(f"{_shown(k, idx, name_of)}: {_shown(v, idx, name_of)}" for k, v in held) + "}"
    if tag == "complex" and isinstance(held, list):
        return f"complex({', '.join(_shown(v, idx, name_of) for v in held)})"
    if tag in ("dtype", "layout", "memory_format"):
        return f"torch.{identifier(str(held))}"
    if tag == "float":
        return f"float({str(held)!r})"
    return f"{identifier(tag)}({str(held)[:80]!r})"


def _stem(node: Node) -> str:
    if node.op == "placeholder":
        return identifier(node.name or "argument")
    if node.op == "output":
        return "output"
    return identifier(node.target.rsplit(".", 1)[-1].strip("_") or node.op).lower()


def _commented(text: str, comment: str) -> str:
    return f"{text.ljust(_WIDTH)}  # {comment}"


def _line(text: str) -> str:
    """Text for a comment: one line, nothing that ends it."""
    return " ".join(re.sub(r"[^\x20-\x7e]+", " ", text).split())[:160]
