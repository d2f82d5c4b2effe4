"""What a record must satisfy before anything is built from it. `validate` either returns or names the row at fault.

Records come from files that anyone may have written, so every field is checked: types, names, references, operators,
sizes, order tokens, nesting. `warehouse.graph.to_fx` builds only what has passed.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import math
import re
from collections.abc import Callable
from typing import Any

from warehouse.graph import operators
from warehouse.graph.constants import decode_bytes
from warehouse.graph.literals import DTYPES, decode_literal, leaves, loads
from warehouse.graph.record import OPS, ROLES, VALUES, GraphRecord, Node, RecordError

MAX_NODES = 500_000  # rows, nested graphs included
MAX_DEPTH = 8  # nested graphs inside nested graphs
MAX_NUMEL = 2**40  # elements that a tensor, or the storage its strides span, may have
MAX_CONSTANT_BYTES = 16 << 20  # all constants together
MAX_TEXT = 4 << 20  # characters of one field
DEVICES = ("cuda", "cpu", "meta")

_BODY = re.compile(r"body_(0|[1-9]\d{0,5})")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
#: Region operators that open and close: closing name -> opening name.
_CLOSES = {
    "torch.amp.autocast_mode._exit_autocast": "torch.amp.autocast_mode._enter_autocast",
    "torch.autograd.grad_mode._exit_inference_mode": "torch.autograd.grad_mode._enter_inference_mode",
    "torch._functorch.predispatch._vmap_decrement_nesting": "torch._functorch.predispatch._vmap_increment_nesting",
}
#: Regions that give values back, made from other values.
_VMAP = {"torch._functorch.predispatch._add_batch_dim", "torch._functorch.predispatch._remove_batch_dim"}
#: Opens when called with True, closes with False (around custom autograd functions).
_TOGGLE = "torch._C._functorch.set_inplace_requires_grad_allowed"
_OPENS = {*_CLOSES.values(), _TOGGLE}
#: Regions that take one boolean.
_BOOLEAN = ("torch._C._set_grad_enabled", _TOGGLE)


class Reference:
    """Stands for a node's value while arguments are checked."""

    def __init__(self, row: int):
        self.row = row

    def __hash__(self) -> int:
        return self.row


def validate(record: GraphRecord) -> None:
    """Raise RecordError(`record_invalid` or `operator_not_listed`) unless `record` is safe and complete."""
    _Validator().graph(record, "", 0)


class _Validator:
    """Counts over the whole record while its graphs are checked one by one."""

    def __init__(self) -> None:
        self.nodes = 0
        self.constant_bytes = 0

    def graph(self, record: GraphRecord, scope: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise RecordError("record_invalid", f"nested graphs deeper than {MAX_DEPTH}")
        self.nodes += len(record.nodes)
        if self.nodes > MAX_NODES:
            raise RecordError("record_invalid", f"more than {MAX_NODES} nodes")
        _Graph(self, record, scope).check()
        for i, body in enumerate(record.bodies):
            self.graph(body, f"{scope}body_{i} ", depth + 1)


class _Graph:
    """One graph of a record under check."""

    def __init__(self, whole: _Validator, record: GraphRecord, scope: str):
        self.whole, self.record, self.scope = whole, record, scope
        self.slots: list[int] = []
        self.bodies_used: set[int] = set()
        self.effects = 0
        self.open: dict[str, list[int]] = {name: [] for name in _OPENS}

    def check(self) -> None:
        rows = self.record.nodes
        for i, node in enumerate(rows):
            try:
                self.row(i, node, last=i == len(rows) - 1)
            except RecordError as error:
                raise RecordError(error.kind, f"{self.scope}row {i}: {error}") from None
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                raise RecordError("record_invalid", f"{self.scope}row {i}: malformed ({error})") from error
        if not rows or rows[-1].op != "output":
            self.refuse("the last row is not the output")
        if sorted(self.slots) != list(range(len(self.slots))):
            self.refuse(f"placeholder slots are not 0 to {len(self.slots) - 1}, each once")
        if self.bodies_used != set(range(len(self.record.bodies))):
            self.refuse("nested graphs and the rows that refer to them do not match")
        for name, rows_open in self.open.items():
            if rows_open:
                self.refuse(f"row {rows_open[0]}: {name} is never closed")

    def refuse(self, message: str) -> None:
        raise RecordError("record_invalid", f"{self.scope}{message}")

    def row(self, i: int, node: Node, last: bool) -> None:
        if node.op not in OPS or node.value not in VALUES:
            raise RecordError("record_invalid", f"unknown op {node.op!r:.60} or value {node.value!r:.60}")
        if node.op == "output" and not last:
            raise RecordError("record_invalid", "an output that is not the last row")
        _check_fields(node)
        if node.op == "constant":
            self.constant(node)
        elif node.op == "placeholder":
            self.placeholder(node)
        elif node.op == "get_attr":
            match = _BODY.fullmatch(node.target)
            if not match or int(match.group(1)) >= len(self.record.bodies) or (node.args, node.kwargs) != ("[]", "{}"):
                raise RecordError(
                    "record_invalid", f"get_attr of {node.target!r:.60}, which is no nested graph of this one"
                )
            self.bodies_used.add(int(match.group(1)))
        else:
            self.call_or_output(i, node)

    def placeholder(self, node: Node) -> None:
        if type(node.slot) is not int or node.role not in ROLES or not isinstance(node.name, str):
            raise RecordError("record_invalid", "a placeholder needs a slot, a role and a name")
        if (node.target, node.args, node.kwargs) != ("", "[]", "{}"):
            raise RecordError("record_invalid", "a placeholder has neither target nor arguments")
        self.slots.append(node.slot)

    def constant(self, node: Node) -> None:
        dtype, shape, data = decode_bytes(node.args)
        if (node.dtype, node.shape) != (dtype, tuple(shape)) or node.target or node.kwargs != "{}":
            raise RecordError("record_invalid", "a constant whose columns and data disagree")
        self.whole.constant_bytes += len(data)
        if self.whole.constant_bytes > MAX_CONSTANT_BYTES:
            raise RecordError("record_invalid", f"constants of more than {MAX_CONSTANT_BYTES} bytes together")

    def call_or_output(self, i: int, node: Node) -> None:
        args, kwargs = decode_call(node, above(i))
        if node.op == "output":
            if len(args) != 1 or kwargs or node.target:
                raise RecordError("record_invalid", "an output has one argument and no target")
            self.no_graphs(args)
            self.effect(node, expected=False)
            return
        operator = operators.lookup(node.target)
        if (operator.kind == "method") != (node.op == "call_method"):
            raise RecordError("record_invalid", f"{node.op} of {node.target}, which is a {operator.kind}")
        if operator.kind in ("method", "attribute") and not (args and isinstance(args[0], Reference)):
            raise RecordError("record_invalid", f"{node.target} needs a node as its first argument")
        if operator.kind == "attribute" and (len(args) != 1 or kwargs):
            raise RecordError("record_invalid", f"{node.target} takes no arguments")
        if operator.kind == "higher_order":
            if not any(self.is_graph(leaf) for leaf in leaves([args, list(kwargs.values())])):
                raise RecordError("record_invalid", f"{node.target} without a nested graph")
        else:
            self.no_graphs([args, list(kwargs.values())])
        if node.target.startswith(("operator.", "builtins.", "math.")):
            _check_python_call(operator.fn, node.target, args, kwargs)
        if operator.kind == "region":
            self.region(i, node.target, args)
        self.effect(node, operators.is_effectful(node.target, args, kwargs))

    def effect(self, node: Node, expected: bool) -> None:
        if node.effect != (self.effects if expected else None):
            raise RecordError(
                "record_invalid", f"effect token {node.effect} where {self.effects if expected else None} is due"
            )
        self.effects += expected

    def region(self, i: int, target: str, args: list[Any]) -> None:
        """Regions must be closed in the graph that opens them, or the mode would outlive the graph."""
        if target not in _CLOSES and target not in _VMAP and any(isinstance(a, Reference) for a in leaves(args)):
            raise RecordError("record_invalid", f"{target} takes plain values")
        if target in _BOOLEAN and not (len(args) == 1 and isinstance(args[0], bool)):
            raise RecordError("record_invalid", f"{target} takes one boolean")
        if target == _TOGGLE and not args[0]:
            self.open[target].clear()
        elif target in _OPENS:
            self.open[target].append(i)
        elif target in _CLOSES:
            started = self.open[_CLOSES[target]]
            opened = args[0].row if args and isinstance(args[0], Reference) else (started[-1] if started else None)
            if opened not in started:
                raise RecordError("record_invalid", f"{target} closes nothing that is open")
            started.remove(opened)

    def is_graph(self, leaf: Any) -> bool:
        return isinstance(leaf, Reference) and self.record.nodes[leaf.row].op == "get_attr"

    def no_graphs(self, values: Any) -> None:
        if any(self.is_graph(leaf) for leaf in leaves(values)):
            raise RecordError("record_invalid", "a nested graph where a value belongs")


def above(row: int) -> Callable[[int], Reference]:
    """What `%k` means in `row`, refusing references that leave the graph."""

    def reference(distance: int) -> Reference:
        if not 1 <= distance <= row:
            raise RecordError("record_invalid", f"reference %{distance} points outside the graph")
        return Reference(row - distance)

    return reference


def decode_call(node: Node, reference: Callable[[int], Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call or output row, `reference(k)` standing for the node k rows above."""
    args, kwargs = loads(node.args), loads(node.kwargs)
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise RecordError("record_invalid", "args must be a JSON list and kwargs a JSON object")
    for key in kwargs:
        if not _KEY.fullmatch(key) or keyword.iskeyword(key) or key.startswith("__"):
            raise RecordError("record_invalid", f"keyword {key!r:.80} is not an identifier")
    return [decode_literal(a, reference) for a in args], {k: decode_literal(v, reference) for k, v in kwargs.items()}


def _check_fields(node: Node) -> None:
    for text in (node.target, node.args, node.kwargs):
        if not isinstance(text, str) or len(text) > MAX_TEXT:
            raise RecordError("record_invalid", "target, args and kwargs are texts of at most 4 Mi characters")
    for optional in (node.name, node.expr, node.elements, node.recipe):
        if optional is not None and (not isinstance(optional, str) or len(optional) > MAX_TEXT):
            raise RecordError("record_invalid", "a column that is not text, or too long")
    if node.dtype is not None and node.dtype not in DTYPES:
        raise RecordError("record_invalid", f"unknown dtype {node.dtype!r:.60}")
    if node.device is not None and node.device not in DEVICES:
        raise RecordError("record_invalid", f"unknown device {node.device!r:.60}")
    if node.op != "placeholder" and (node.slot, node.role, node.name, node.recipe) != (None, None, None, None):
        raise RecordError("record_invalid", f"a {node.op} row with a placeholder's columns")
    if not node.op.startswith("call_") and node.effect is not None:
        raise RecordError("record_invalid", f"a {node.op} row with an effect token")
    if node.value == "tensor" and node.op != "output" and (node.dtype is None or node.shape is None):
        raise RecordError("record_invalid", "a tensor without dtype or shape")
    if node.shape is not None:
        _check_shape(node)


def _check_shape(node: Node) -> None:
    shape = node.shape or ()
    smallest = 0 if node.expr is None else -1  # a symbolic size may be unknown
    if len(shape) > 64 or any(type(s) is not int or s < smallest for s in shape):
        raise RecordError("record_invalid", f"sizes {str(shape)[:80]} are not those of a tensor")
    if math.prod(s for s in shape if s > 0) >= MAX_NUMEL:
        raise RecordError("record_invalid", f"a tensor of shape {str(shape)[:80]} has 2**40 elements or more")
    if node.stride is not None:
        if len(node.stride) != len(shape) or any(type(s) is not int or s < -1 for s in node.stride):
            raise RecordError("record_invalid", f"strides {str(node.stride)[:80]} do not fit shape {str(shape)[:80]}")
        if sum((s - 1) * t for s, t in zip(shape, node.stride, strict=True) if s > 0) >= MAX_NUMEL:
            raise RecordError("record_invalid", f"strides {str(node.stride)[:80]} span 2**40 elements or more")


def _check_python_call(fn: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Python's own functions on nodes only: no arithmetic on literals alone, which could ask for any amount of work.

    The code that torch.fx prints for an operator drops arguments it does not expect, so their number is checked too.
    """
    if kwargs or not any(isinstance(leaf, Reference) for leaf in leaves(args)):
        raise RecordError("record_invalid", f"{name} takes at least one node and no keywords")
    if any(isinstance(leaf, str) for leaf in args):
        raise RecordError("record_invalid", f"{name} takes no text")
    if name.startswith("operator."):
        _signature(fn).bind(*args)


_signature = functools.cache(inspect.signature)
