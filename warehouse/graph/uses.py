"""Who reads a value, and what that allows the value to be: index ranges and domains, read off a graph record.

In: a record. Out: for a row, the range of integers that every index consumer accepts, and the domain that its direct
float consumers want. Casts and views are followed, and adding or multiplying by a constant shifts or scales a range.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warehouse.graph.literals import DTYPES, leaves
from warehouse.graph.record import GraphRecord, Node
from warehouse.graph.validate import Reference, above, decode_call

#: Last part of operator names whose result holds the same numbers as their first argument (or a subset of them).
_SAME = {
    "view", "reshape", "to", "type", "type_as", "long", "int", "short", "contiguous", "clone", "detach",
    "unsqueeze", "squeeze", "flatten", "expand", "expand_as", "transpose", "permute", "t", "T", "mT", "flip",
    "roll", "repeat", "tile", "repeat_interleave", "unbind", "chunk", "split", "narrow", "select", "movedim",
    "ravel", "unflatten", "view_as", "reshape_as", "cat", "stack", "cuda", "cpu", "float", "double", "half",
    "bfloat16", "pad", "unique", "diagonal",
}  # fmt: skip
#: Operator -> (argument that holds indices, argument that says the dimension).
_INDEXED = {
    "gather": (2, 1), "index_select": (2, 1), "take_along_dim": (1, 2), "scatter": (2, 1), "scatter_": (2, 1),
    "scatter_add": (2, 1), "scatter_add_": (2, 1), "scatter_reduce": (2, 1), "scatter_reduce_": (2, 1),
    "index_add": (2, 1), "index_add_": (2, 1), "index_copy": (2, 1), "index_copy_": (2, 1), "index_fill": (2, 1),
    "index_fill_": (2, 1),
}  # fmt: skip
_POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "lgamma", "digamma", "reciprocal"}
_PROBABILITY = {"bernoulli", "logit", "multinomial", "binary_cross_entropy", "erfinv"}

Range = tuple[int, int]


class Uses:
    """The calls of one graph, by the rows they read."""

    def __init__(self, record: GraphRecord):
        self.rows = record.nodes
        self.calls: dict[int, tuple[list[Any], dict[str, Any]]] = {}
        self.users: dict[int, list[int]] = {}
        for i, node in enumerate(record.nodes):
            if not node.op.startswith("call_"):
                continue
            args, kwargs = decode_call(node, above(i))
            self.calls[i] = (args, kwargs)
            for row in {leaf.row for leaf in leaves([args, list(kwargs.values())]) if isinstance(leaf, Reference)}:
                self.users.setdefault(row, []).append(i)

    def shape(self, value: Any) -> tuple[int, ...]:
        return (self.rows[value.row].shape or ()) if isinstance(value, Reference) else ()

    def consumers(self, row: int) -> Iterator[tuple[str, int, list[Any], dict[str, Any]]]:
        """(last part of the operator's name, its row, args, kwargs) of every direct reader of `row`."""
        for user in self.users.get(row, []):
            yield self.rows[user].target.rpartition(".")[2], user, *self.calls[user]

    def readers(self, row: int) -> Iterator[tuple[str, int, int, list[Any], dict[str, Any]]]:
        """(name, row read, reading row, args, kwargs) of all readers, casts and views followed."""
        waiting, seen = [row], {row}
        while waiting:
            here = waiting.pop()
            for name, user, args, kwargs in self.consumers(here):
                yield name, here, user, args, kwargs
                if user not in seen and self._same(name, here, args) and len(seen) < 4096:
                    seen.add(user)
                    waiting.append(user)

    @staticmethod
    def _same(name: str, row: int, args: list[Any]) -> bool:
        if name == "getitem":
            return bool(args) and isinstance(args[0], Reference) and args[0].row == row
        return name in _SAME

    def index_range(self, row: int) -> Range | None:
        """[low, high) that every index consumer of the integers in `row` accepts; None when nothing indexes by them."""
        return self._index_range(row, 0)

    def _index_range(self, row: int, depth: int) -> Range | None:
        found: Range | None = None
        for name, here, user, args, kwargs in self.readers(row):
            allowed = self._allowed(name, here, args, kwargs)
            if allowed is None and depth < 8:
                constant = _constant_operand(here, args)
                if constant is not None:
                    allowed = _undo(name, here, args, constant, self._index_range(user, depth + 1))
            if allowed is not None:
                found = allowed if found is None else (max(found[0], allowed[0]), min(found[1], allowed[1]))
        return found if found is not None and found[0] < found[1] else None

    def indexes_by_differences(self, row: int) -> bool:
        """Whether differences between integers of `row` serve as indices (width of a box, distance of positions)."""
        readers = list(self.readers(row))
        own = {here for _, here, *_ in readers}
        return any(
            name == "sub"
            and len(args) == 2
            and all(isinstance(a, Reference) and a.row in own for a in args)
            and args[0].row != args[1].row
            and self.index_range(user) is not None
            for name, _here, user, args, _kwargs in readers
        )

    def _allowed(self, name: str, row: int, args: list[Any], kwargs: dict[str, Any]) -> Range | None:
        """The range that one consumer allows, when it uses `row` as indices."""

        def argument(position: int, keyword: str) -> Any:
            return kwargs.get(keyword, args[position] if position < len(args) else None)

        def here(value: Any) -> bool:
            return isinstance(value, Reference) and value.row == row

        if name in ("embedding", "embedding_bag") and here(argument(0, "input")):
            return self._sized(argument(1, "weight"), 0)
        if name == "one_hot" and here(argument(0, "input")):
            classes = argument(1, "num_classes")
            return (0, classes) if isinstance(classes, int) and classes > 0 else None
        if name in ("cross_entropy", "nll_loss", "cross_entropy_loss", "nll_loss_nd") and here(argument(1, "target")):
            scores = self.shape(argument(0, "input"))
            return self._sized(argument(0, "input"), 1 if len(scores) > 1 else 0)
        if name in _INDEXED:
            index_at, dim_at = _INDEXED[name]
            dim = argument(dim_at, "dim")
            if here(argument(index_at, "indices" if name == "take_along_dim" else "index")):
                return self._sized(args[0] if args else None, dim if isinstance(dim, int) else 0)
        if name in ("getitem", "setitem", "index_put", "index_put_"):
            return self._by_position(row, args)
        return None

    def _by_position(self, row: int, args: list[Any]) -> Range | None:
        """Range of `row` where it stands inside the index of `x[...]`."""
        items = list(args[1]) if isinstance(args[1], list | tuple) else [args[1]]
        taken = [self._dimensions(item) for item in items]
        dim, found = 0, None
        for item, width in zip(items, taken, strict=True):
            if item is Ellipsis:
                dim = len(self.shape(args[0])) - sum(taken[items.index(item) + 1 :])
            elif isinstance(item, Reference) and item.row == row and self.rows[row].dtype != "bool":
                sized = self._sized(args[0], dim)
                if sized is not None:
                    found = sized if found is None else (0, min(found[1], sized[1]))
            dim += width
        return found

    def _dimensions(self, item: Any) -> int:
        if item is None or item is Ellipsis or isinstance(item, bool):
            return 0
        if isinstance(item, Reference) and self.rows[item.row].dtype == "bool":
            return len(self.shape(item))
        return 1

    def _sized(self, value: Any, dim: int) -> Range | None:
        shape = self.shape(value)
        return (0, shape[dim]) if -len(shape) <= dim < len(shape) and shape[dim] > 0 else None

    def domain(self, row: int) -> str | None:
        """`positive` or `probability` when a direct consumer of the floats in `row` needs it."""
        for name, here, _user, args, _kwargs in self.readers(row):
            if name in _PROBABILITY:
                return "probability"
            if name in _POSITIVE:
                return "positive"
            if name in ("div", "truediv", "true_divide") and len(args) > 1 and _is(args[1], here):
                return "positive"
            if name in ("pow", "float_power") and len(args) > 1 and _is(args[0], here) and isinstance(args[1], float):
                return "positive"
        return None

    def is_attention_mask(self, row: int) -> bool:
        """Whether `row` reaches the attn_mask of scaled_dot_product_attention."""
        for name, here, _user, args, kwargs in self.readers(row):
            if name == "scaled_dot_product_attention":
                mask = kwargs.get("attn_mask", args[3] if len(args) > 3 else None)
                if _is(mask, here):
                    return True
        return False


def _is(value: Any, row: int) -> bool:
    return isinstance(value, Reference) and value.row == row


def _constant_operand(row: int, args: list[Any]) -> int | None:
    """The integer c of `x + c` or `c + x`, where x is `row`."""
    if len(args) == 2:
        for one, other in (args, reversed(args)):
            if _is(one, row) and isinstance(other, int) and not isinstance(other, bool):
                return other
    return None


def _undo(name: str, row: int, args: list[Any], c: int, after: Range | None) -> Range | None:
    """The range of x, given that of the result of `x <name> c`."""
    if after is None:
        return None
    low, high = after
    if name in ("add", "add_", "iadd"):
        return low - c, high - c
    if name in ("sub", "sub_", "isub"):
        return (low + c, high + c) if _is(args[0], row) else (c - high + 1, c - low + 1)
    if name in ("mul", "mul_", "imul") and c > 0:
        return -(-low // c), -(-high // c)
    if name in ("floordiv", "floor_divide") and c > 0 and _is(args[0], row):
        return low * c, high * c
    return None


def is_integer(node: Node) -> bool:
    dtype = DTYPES.get(node.dtype or "")
    return dtype is not None and not dtype.is_floating_point and not dtype.is_complex and node.dtype != "bool"
