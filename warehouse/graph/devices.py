"""A record moved to another device: the same computation, its device literals and device columns rewritten.

Graphs are traced for CUDA without one; to run such a graph on a CPU, its factories must not ask for `cuda`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from warehouse.graph.literals import dumps, loads
from warehouse.graph.record import GraphRecord, Node


def on_device(record: GraphRecord, device: str) -> GraphRecord:
    """`record` with every device that is not `meta` replaced by `device` (`cpu`, `cuda`), nested graphs included."""
    return GraphRecord(
        tuple(_moved(node, device) for node in record.nodes), tuple(on_device(b, device) for b in record.bodies)
    )


def _moved(node: Node, device: str) -> Node:
    changes: dict[str, Any] = {}
    if node.device not in (None, "meta"):
        changes["device"] = device
    # `.cuda()` and `.cpu()` name a device without a literal.
    if node.target in ("torch.Tensor.cuda", "torch.Tensor.cpu") and node.target != f"torch.Tensor.{device}":
        changes["target"] = f"torch.Tensor.{device}"
    for field in ("args", "kwargs"):
        text = getattr(node, field)
        if '"device"' in text or '"str":"cuda' in text or '"str":"cpu' in text:
            data = loads(text)
            if field == "kwargs":
                changes[field] = dumps({k: _literal(v, device) for k, v in data.items()})
            else:
                changes[field] = dumps([_literal(v, device) for v in data])
    return replace(node, **changes) if changes else node


def _literal(data: Any, device: str) -> Any:
    if isinstance(data, list):
        return [_literal(v, device) for v in data]
    if isinstance(data, dict) and len(data) == 1:
        ((tag, body),) = data.items()
        if tag == "device" and body != "meta":
            return {"device": device}
        if tag == "str" and isinstance(body, str) and body.split(":")[0] in ("cuda", "cpu"):
            return {"str": device}
        return {tag: _literal(body, device) if isinstance(body, list) else body}
    return data
