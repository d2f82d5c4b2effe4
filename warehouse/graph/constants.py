"""Small tensors stored by value: a tensor as the `args` of a `constant` node, and back.

The JSON is a list of ordinary literals (`warehouse.graph.literals`): dtype, size, then the raw little-endian bytes in
base64, cut into strings that the literal format allows. Nothing is pickled, and every tensor has one text.
"""

from __future__ import annotations

import base64
import binascii
import math

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from warehouse.graph.literals import DTYPE_NAMES, DTYPES, dumps, loads
from warehouse.graph.record import RecordError

#: Bytes of data that a constant may hold.
MAX_BYTES = 64 << 10
_CHUNK = 4096


def encode_tensor(tensor: torch.Tensor) -> str:
    """The args JSON of a constant node.

    Raises RecordError("graph_not_serialisable") for a tensor without data, a large one, or an unusual layout.
    """
    if isinstance(tensor, FakeTensor) or tensor.device.type == "meta" or tensor.layout != torch.strided:
        raise RecordError("graph_not_serialisable", f"a constant without plain data ({tensor.device}, {tensor.layout})")
    if tensor.dtype not in DTYPE_NAMES:
        raise RecordError("graph_not_serialisable", f"a constant of dtype {tensor.dtype}")
    if tensor.numel() * tensor.element_size() > MAX_BYTES:
        size = tensor.numel() * tensor.element_size()
        raise RecordError("graph_not_serialisable", f"a constant of {size} bytes; at most {MAX_BYTES} are stored")
    with unset_fake_temporarily(), torch.no_grad():
        flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
        data = bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""
    return _text(DTYPE_NAMES[tensor.dtype], list(tensor.shape), data)


def _text(dtype: str, shape: list[int], data: bytes) -> str:
    encoded = base64.b64encode(data).decode()
    chunks = [{"str": encoded[i : i + _CHUNK]} for i in range(0, len(encoded), _CHUNK)]
    return dumps([{"dtype": dtype}, {"size": shape}, *chunks])


def decode_tensor(args: str) -> torch.Tensor:
    """The tensor, on the CPU. Raises RecordError("record_invalid") for any text `encode_tensor` does not write."""
    dtype, shape, data = decode_bytes(args)
    with unset_fake_temporarily():
        if not data:
            return torch.empty(shape, dtype=DTYPES[dtype], device="cpu")
        return torch.frombuffer(bytearray(data), dtype=DTYPES[dtype]).reshape(shape).clone()


def decode_bytes(args: str) -> tuple[str, list[int], bytes]:
    """(dtype name, shape, raw bytes), checked without making a tensor. Raises RecordError("record_invalid")."""
    if len(args) > 2 * MAX_BYTES:
        raise RecordError("record_invalid", f"a constant above {MAX_BYTES} bytes")
    parts = loads(args)
    try:
        (dtype,), (shape,) = (p.values() for p in parts[:2])
        encoded = "".join(p["str"] for p in parts[2:])
        data = base64.b64decode(encoded, validate=True)
        sizes = isinstance(shape, list) and all(type(s) is int and s >= 0 for s in shape)
        if (
            not sizes
            or math.prod(s or 1 for s in shape) >= 2**40
            or dtype not in DTYPES
            or _text(dtype, shape, data) != args
        ):
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise RecordError("record_invalid", "a constant that is not [dtype, size, base64 ...]") from error
    expected = math.prod(shape) * DTYPES[dtype].itemsize
    if len(data) != expected or expected > MAX_BYTES:
        raise RecordError("record_invalid", f"a constant of {len(data)} bytes where its shape needs {expected}")
    if dtype == "bool" and not set(data) <= {0, 1}:
        raise RecordError("record_invalid", "a boolean constant with bytes other than 0 and 1")
    return dtype, shape, data
