"""Arguments of a node as JSON, and back: the only values that a stored graph may carry.

Plain JSON holds None, bool, int, float (by repr, so exactly) and list. Anything else is a one-key object:

    {"str": "none"}  {"tuple": [...]}  {"dict": [[key, value], ...]}  {"slice": [a, b, c]}  {"ellipsis": 0}
    {"dtype": "float32"}  {"device": "cuda"}  {"layout": "strided"}  {"memory_format": "channels_last"}
    {"float": "inf" | "-inf" | "nan"}  {"complex": [re, im]}  {"size": [...]}

and a bare string is always a reference to another node, `"%k"`, k rows above. Decoding looks names up in the tables
below; it never evaluates or imports anything.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from warehouse.graph.record import RecordError

_DTYPE_NAMES = (
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128", "complex32",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
DTYPES = {name: getattr(torch, name) for name in _DTYPE_NAMES if hasattr(torch, name)}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
LAYOUTS = {"strided": torch.strided, "sparse_coo": torch.sparse_coo, "jagged": torch.jagged}
MEMORY_FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
    "preserve_format": torch.preserve_format,
}
DEVICE = re.compile(r"(cpu|cuda|meta)(:\d{1,2})?")
REF = re.compile(r"%([1-9]\d{0,8})")
MAX_DEPTH = 16
MAX_STRING = 4096
MAX_ITEMS = 65536

_LAYOUT_NAMES = {v: k for k, v in LAYOUTS.items()}
_FORMAT_NAMES = {v: k for k, v in MEMORY_FORMATS.items()}


def dumps(value: Any) -> str:
    """Compact JSON. Floats keep their exact value; NaN and infinities never reach here (see `encode_literal`)."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def encode_literal(value: Any, ref: Callable[[Any], int | None]) -> Any:
    """`value` as JSON-ready data. `ref(x)` gives the distance in rows when x is a node, else None.

    Raises RecordError("graph_not_serialisable") for a value that the format does not know.
    """
    distance = ref(value)
    if distance is not None:
        return f"%{distance}"
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return {"float": "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")}
    if isinstance(value, int) and type(value).__name__ != "SymInt":
        if not -(2**63) <= value < 2**64:
            raise RecordError("graph_not_serialisable", f"integer literal {value} needs more than 64 bits")
        return int(value)
    if isinstance(value, complex):
        return {"complex": [encode_literal(value.real, ref), encode_literal(value.imag, ref)]}
    if isinstance(value, str):
        if len(value) > MAX_STRING:
            raise RecordError("graph_not_serialisable", f"string literal of {len(value)} characters")
        return {"str": value}
    if isinstance(value, torch.Size):
        return {"size": [encode_literal(v, ref) for v in value]}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {"tuple": [encode_literal(v, ref) for v in value]}
    if isinstance(value, list):
        return [encode_literal(v, ref) for v in value]
    if isinstance(value, dict):
        return {"dict": [[encode_literal(k, ref), encode_literal(v, ref)] for k, v in value.items()]}
    if isinstance(value, slice):
        return {"slice": [encode_literal(v, ref) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": 0}
    if isinstance(value, torch.dtype) and value in DTYPE_NAMES:
        return {"dtype": DTYPE_NAMES[value]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.layout) and value in _LAYOUT_NAMES:
        return {"layout": _LAYOUT_NAMES[value]}
    if isinstance(value, torch.memory_format) and value in _FORMAT_NAMES:
        return {"memory_format": _FORMAT_NAMES[value]}
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise RecordError("graph_not_serialisable", f"a literal of type {kind}")


def decode_literal(data: Any, node: Callable[[int], Any], depth: int = 0) -> Any:
    """The inverse of `encode_literal`; `node(k)` gives the node k rows above.

    Raises RecordError("record_invalid") for anything that `encode_literal` would not have written.
    """
    if depth > MAX_DEPTH:
        raise RecordError("record_invalid", f"arguments nested deeper than {MAX_DEPTH}")

    def many(items: Any) -> list[Any]:
        if not isinstance(items, list) or len(items) > MAX_ITEMS:
            raise RecordError("record_invalid", f"expected a list of at most {MAX_ITEMS} items")
        return [decode_literal(v, node, depth + 1) for v in items]

    if data is None or isinstance(data, bool):
        return data
    if isinstance(data, float):
        if not math.isfinite(data):
            raise RecordError("record_invalid", "a float that JSON cannot hold")
        return data
    if isinstance(data, int):
        if not -(2**63) <= data < 2**64:
            raise RecordError("record_invalid", f"integer literal {data} needs more than 64 bits")
        return data
    if isinstance(data, str):
        match = REF.fullmatch(data)
        if not match:
            raise RecordError("record_invalid", f"bare string {data[:60]!r} is not a reference")
        return node(int(match.group(1)))
    if isinstance(data, list):
        return many(data)
    if not isinstance(data, dict) or len(data) != 1:
        raise RecordError("record_invalid", f"an argument must be a one-key object, not {str(data)[:80]}")
    ((tag, body),) = data.items()
    if tag == "str" and isinstance(body, str) and len(body) <= MAX_STRING:
        return body
    if tag == "tuple":
        return tuple(many(body))
    if tag == "size":
        sizes = many(body)
        if not all(isinstance(v, int) and abs(v) < 2**63 for v in sizes):
            raise RecordError("record_invalid", "a size holds something else than integers")
        return torch.Size(sizes)
    if tag == "slice" and isinstance(body, list) and len(body) == 3:
        return slice(*many(body))
    if tag == "ellipsis" and body == 0:
        return Ellipsis
    if tag == "float" and body in ("inf", "-inf", "nan"):
        return float(body)
    if tag == "complex" and isinstance(body, list) and len(body) == 2:
        re_, im = many(body)
        if isinstance(re_, float) and isinstance(im, float):
            return complex(re_, im)
    if tag == "dict":
        pairs = many(body)
        if all(isinstance(p, list) and len(p) == 2 and isinstance(p[0], str | int | bool) for p in pairs):
            return dict(pairs)
    if tag == "device" and isinstance(body, str) and DEVICE.fullmatch(body):
        return torch.device(body)
    for name, table in (("dtype", DTYPES), ("layout", LAYOUTS), ("memory_format", MEMORY_FORMATS)):
        if tag == name and isinstance(body, str) and body in table:
            return table[body]
    raise RecordError("record_invalid", f"unknown argument {dumps(data)[:80]}")


def loads(text: str) -> Any:
    """Parse stored JSON, refusing the NaN and Infinity words that Python would accept."""

    def refuse(word: str) -> Any:
        raise RecordError("record_invalid", f"{word} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, or an integer of thousands of digits
        raise RecordError("record_invalid", f"arguments are not JSON: {error}") from error


def leaves(value: Any) -> list[Any]:
    """Every leaf of an argument structure, slices opened."""
    flat = []
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, slice):
            flat.extend(leaves([leaf.start, leaf.stop, leaf.step]))
        else:
            flat.append(leaf)
    return flat
