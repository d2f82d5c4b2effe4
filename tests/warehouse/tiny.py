"""A warehouse of six hand-made graphs whose every answer can be counted by hand.

A  linear -> layer_norm(8) -> gelu -> linear                     template T1
B  the same at width 16                                          template T1
C  scaled_dot_product_attention                                  no softmax, fused
D  matmul -> add -> mul -> relu_ -> matmul                       no softmax, two products, one effect
E  matmul -> softmax -> matmul, bfloat16, symbolic sizes
F  a nested graph, a hostile parameter name, a string that looks like a reference
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from warehouse.graph.record import GraphRecord, Node
from warehouse.rows import graph_columns, node_table
from warehouse.schema import CAPTURES, FAILURES, GRAPHS, MODELS, OCCURRENCES, TIMINGS
from warehouse.snapshot import Snapshot, Warehouse

HOSTILE = "o'hara\"; DROP TABLE models;--\n../../etc/passwd,\t\\ {x} %1 \u202e"
F = "torch.nn.functional."


def placeholder(name: str, role: str, slot: int, *shape: int, dtype: str = "float32", expr: str | None = None) -> Node:
    return Node("placeholder", name=name, role=role, slot=slot, shape=shape, dtype=dtype, expr=expr, device="cuda")


def call(target: str, *args: Any, shape: tuple[int, ...], op: str = "call_function", **more: Any) -> Node:
    """`args` are JSON-ready; keyword arguments of the call go in `kwargs`, columns of the row by their names."""
    kwargs = json.dumps(more.pop("kwargs", {}), separators=(",", ":"))
    text = json.dumps(args, separators=(",", ":"))
    return Node(op, target, text, kwargs, shape=shape, **{"dtype": "float32", "device": "cuda", **more})


def output(*args: Any) -> Node:
    return Node("output", value="none", args=json.dumps([{"tuple": list(args)}], separators=(",", ":")))


def mlp(width: int) -> GraphRecord:
    """Ten rows: x, two linears with weight and bias, a norm between."""
    size = (4, width)
    return GraphRecord(
        (
            placeholder("x", "input", 0, *size),
            placeholder("fc1.weight", "parameter", 1, width, width),
            placeholder("fc1.bias", "parameter", 2, width),
            call(F + "linear", "%3", "%2", "%1", shape=size),
            placeholder("norm.weight", "parameter", 3, width),
            call(F + "layer_norm", "%2", {"tuple": [width]}, "%1", None, 1e-05, shape=size),
            call(F + "gelu", "%1", shape=size, kwargs={"approximate": {"str": "none"}}),
            placeholder("fc2.weight", "parameter", 4, width, width),
            call(F + "linear", "%2", "%1", None, shape=size),
            output("%1"),
        )
    )


RECORDS: dict[str, GraphRecord] = {
    "a" * 32: mlp(8),
    "b" * 32: mlp(16),
    "c" * 32: GraphRecord(
        (
            *(placeholder(n, "input", i, 1, 2, 4, 8) for i, n in enumerate(("q", "k", "v"))),
            call(F + "scaled_dot_product_attention", "%3", "%2", "%1", shape=(1, 2, 4, 8), kwargs={"dropout_p": 0.0}),
            output("%1"),
        )
    ),
    "d" * 32: GraphRecord(
        (
            placeholder("x", "input", 0, 4, 4),
            call("torch.matmul", "%1", "%1", shape=(4, 4)),
            call("operator.add", "%1", 1.0, shape=(4, 4)),
            call("operator.mul", "%1", "%2", shape=(4, 4)),
            call("torch.Tensor.relu_", "%1", shape=(4, 4), op="call_method", effect=0),
            call("torch.matmul", "%1", "%5", shape=(4, 4)),
            output("%1"),
        )
    ),
    "e" * 32: GraphRecord(
        (
            Node("placeholder", value="symint", expr="s0", name="n", role="symbol", slot=0),
            placeholder("x", "input", 1, 7, 4, dtype="bfloat16", expr="[s0, 4]"),
            call("torch.matmul", "%1", "%1", shape=(7, 7), dtype="bfloat16", expr="[s0, s0]"),
            call(F + "softmax", "%1", shape=(7, 7), dtype="bfloat16", expr="[s0, s0]", kwargs={"dim": -1}),
            call("torch.matmul", "%1", "%3", shape=(7, 4), dtype="bfloat16", expr="[s0, 4]"),
            output("%1"),
        )
    ),
    "f" * 32: GraphRecord(
        (
            placeholder("x", "input", 0, 2),
            placeholder(HOSTILE, "parameter", 1, 2),
            Node("get_attr", "body_0", value="other"),
            call("torch.ops.higher_order.wrap", "%1", "%3", "%2", {"str": '%1 "%2'}, shape=(2,)),
            output("%1"),
        ),
        (
            GraphRecord(
                (
                    placeholder("a", "input", 0, 2),
                    placeholder("b", "input", 1, 2),
                    call("operator.add", "%2", "%1", shape=(2,)),
                    output("%1"),
                )
            ),
        ),
    ),
}
_TEMPLATES = {"a": "1", "b": "1", "c": "2", "d": "3", "e": "4", "f": "5"}
_CAPTURED = {"c1": ("a", "b"), "c2": ("a", "c"), "c3": ("d", "e", "f"), "c4": ()}
_NAMED = {
    "c1": ("timm", "mlp_a"),
    "c2": ("timm", HOSTILE),
    "c3": ("transformers", "bert"),
    "c4": ("transformers", "bad"),
}
_BREAKS = {
    "c1": ["data-dependent jump\nmore"],
    "c2": [],
    "c3": ["data-dependent jump\nother", "unsupported call"],
    "c4": [],
}


def tables() -> dict[str, pa.Table]:
    """Every table of the warehouse, as `Warehouse.publish` takes them."""
    graphs, occurrences, captures, models, timings = [], [], [], [], []
    first = {"a": ("c1", 0), "b": ("c1", 1), "c": ("c2", 1), "d": ("c3", 0), "e": ("c3", 1), "f": ("c3", 2)}
    for graph_hash, record in RECORDS.items():
        key = graph_hash[0]
        graphs.append(
            {
                "graph_hash": graph_hash,
                "structure_hash": f"structure {key}",
                "template_hash": f"T{_TEMPLATES[key]}",
                "op_hash": f"ops {_TEMPLATES[key]}",
                "capture_id": first[key][0],
                "graph_index": first[key][1],
                "hash_version": 1,
                **graph_columns(record),
            }
        )
    for i, (capture, held) in enumerate(_CAPTURED.items(), 1):
        source, name = _NAMED[capture]
        occurrences += [
            {"graph_hash": key * 32, "capture_id": capture, "graph_index": k, "config_hash": f"config{i}"}
            for k, key in enumerate(held)
        ]
        captures.append(
            {
                "capture_id": capture, "config_hash": f"config{i}", "source": source, "name": name,
                "variant": "eval-static-float32-cuda", "mode": "eval", "shapes": "static", "dtype": "float32",
                "device": "cuda", "build": "empty", "status": "complete" if held else "failed",
                "graph_count": len(held),
                "break_count": len(_BREAKS.get(capture, [])), "break_reasons": _BREAKS.get(capture, []),
                "node_count": sum(RECORDS[key * 32].num_nodes() for key in held), "parameters": 10, "hash_version": 1,
            }
        )  # fmt: skip
        models.append(
            {"source": source, "name": name, "config_hash": f"config{i}", "family": name[:4], "revision": "1"}
        )
        timings.append({"capture_id": capture, "seconds": float(i), "peak_mb": 100.0})
    models.append({"source": "timm", "name": "mlp_twin", "config_hash": "config1", "family": "twin", "revision": "1"})
    failures = [
        {
            "capture_id": "c4", "config_hash": "config4", "source": "transformers", "name": "bad",
            "variant": "eval-static-float32-cuda", "class": "timeout", "stage": "trace", "exception": "Deadline",
            "message": "the deadline passed\nafter 60 s", "place": "",
        }
    ]  # fmt: skip
    filled = {
        "models": (models, MODELS), "captures": (captures, CAPTURES), "graphs": (graphs, GRAPHS),
        "occurrences": (occurrences, OCCURRENCES), "failures": (failures, FAILURES), "timings": (timings, TIMINGS),
    }  # fmt: skip
    made = {name: pa.Table.from_pylist(rows, table.schema) for name, (rows, table) in filled.items()}
    return {**made, "nodes": node_table(RECORDS.items())}


def publish(root: Path | str) -> tuple[Warehouse, Snapshot]:
    """The tiny warehouse at `root`, published as its first snapshot."""
    warehouse = Warehouse.open(root, create=True)
    return warehouse, warehouse.publish(None, tables())
