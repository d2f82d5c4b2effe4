"""A made-up snapshot for the choice of tasks: regions of models, their variants, and figures that a test may spoil.

A `Region` is a chain of pointwise operators in one model; it comes as captured (float32, width 64), and as a variant in
every other dtype and size. By default each form is one kernel, sound, slower than eager on the device, and in the tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dedup.hashes import hashes
from tests.warehouse.tiny import F, call, output, placeholder
from warehouse import sql
from warehouse.graph.record import GraphRecord
from warehouse.rows import node_table
from warehouse.schema import CAPTURES, GRAPHS, MODELS, OCCURRENCES, PROFILES, TABLES
from warehouse.snapshot import Snapshot, Warehouse

GPU = "Some GPU"
OPS = ("relu", "gelu", "silu", "mish", "softplus", "hardswish", "elu", "selu", "celu", "tanh", "sigmoid", "logsigmoid")
FORMS = (
    ("given", "float32", 64),
    ("float16", "float16", 64),
    ("bfloat16", "bfloat16", 64),
    ("size:batch=4", "float32", 4096),
)
SOUND = {
    "class": "ok", "scheduler_kernels": 1, "extern_kernels": 0, "inductor_kernels": 1, "inductor_copies": 0,
    "eager_host_us": 50.0, "inductor_host_us": 90.0, "eager_device_us": 10.0, "inductor_device_us": 12.0,
    "eager_host_spread": 0.02, "inductor_host_spread": 0.02, "eager_device_spread": 0.02,
    "inductor_device_spread": 0.02,
    "launch_us": 1.3, "headroom": 2.0, "reference": "float64", "eager_t": -5, "inductor_t": -5, "zero_passes": False,
    "constant_passes": False, "copy_passes": False, "insensitive": [], "cause": "both",
}  # fmt: skip


def chain(ops: Iterable[str], width: int = 64, dtype: str = "float32") -> GraphRecord:
    """x -> ops -> out."""
    shape = (2, width)
    calls = (call(F + op, "%1", shape=shape, dtype=dtype) for op in ops)
    return GraphRecord((placeholder("x", "input", 0, *shape, dtype=dtype), *calls, output("%1")))


@dataclass(frozen=True)
class Region:
    """figures: columns of `profiles` of every form; None: not profiled. by_form: the same for single forms."""

    ops: tuple[str, ...]
    families: tuple[str, ...]
    figures: Mapping[str, Any] | None = field(default_factory=dict)
    by_form: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    forms: tuple[tuple[str, str, int], ...] = FORMS
    kind: str = "fusible"


def regions(count: int, **more: Any) -> list[Region]:
    """As many regions, each an operator sequence and a model family of its own."""
    pairs = [(a, b, c) for a in OPS for b in OPS for c in OPS]
    return [Region(pairs[i * 7 % len(pairs)], (f"family{i}",), **more) for i in range(count)]


def tables(world: Iterable[Region]) -> dict[str, pa.Table]:
    """Rows of every table that the choice reads. A family is a model of one graph that holds all its regions."""
    subgraphs: dict[str, dict[str, Any]] = {}
    records: dict[str, GraphRecord] = {}
    occurrences, profiles, families = [], [], set()
    for region in world:
        given = hashes(chain(region.ops)).graph_hash
        for variant, dtype, width in region.forms:
            record = chain(region.ops, width, dtype)
            found = hashes(record)
            name = found.graph_hash
            figures = region.by_form.get(variant, region.figures)
            if name not in subgraphs and figures is not None:
                key = {"subgraph_hash": name, "device": GPU, "mode": "default"}
                profiles.append(
                    {**key, **SOUND, **region.figures, **figures} if region.figures else {**key, **SOUND, **figures}
                )
            records[name] = record
            subgraphs.setdefault(name, {
                "subgraph_hash": name, "kind": region.kind, "variant": variant,
                "of": None if variant == "given" else given,
                "structure_hash": found.structure_hash, "template_hash": found.template_hash, "op_hash": found.op_hash,
                "node_count": len(record.nodes), "op_count": len(region.ops), "compute_count": len(region.ops),
                "input_count": 1, "output_count": 1, "dtypes": [dtype], "ops": sorted({F + op for op in region.ops}),
            })  # fmt: skip
        for family in region.families:
            families.add(family)
            occurrences.append(
                {
                    "subgraph_hash": given,
                    "kind": region.kind,
                    "graph_hash": f"graph of {family}",
                    "first_row": 1,
                    "rows": [1],
                }
            )
    named = sorted(families)
    graphs = [
        {"graph_hash": f"graph of {f}", "template_hash": f"template of {f}", "capture_id": f"capture of {f}"}
        for f in named
    ]
    held = [{**g, "graph_index": 0, "config_hash": f"config of {g['graph_hash'][9:]}"} for g in graphs]
    models = [
        {"source": "toy", "name": f"model of {f}", "config_hash": f"config of {f}", "family": f, "revision": "1"}
        for f in named
    ]
    captures = [{"capture_id": f"capture of {f}", "config_hash": f"config of {f}", "status": "complete"} for f in named]
    return {
        "subgraphs": pa.Table.from_pylist(list(subgraphs.values()), TABLES["subgraphs"].schema),
        "subgraph_occurrences": pa.Table.from_pylist(occurrences, TABLES["subgraph_occurrences"].schema),
        "subgraph_nodes": node_table(sorted(records.items())),
        "profiles": pa.Table.from_pylist(profiles, PROFILES.schema),
        "graphs": pa.Table.from_pylist(graphs, GRAPHS.schema),
        "occurrences": pa.Table.from_pylist(
            [{k: h[k] for k in OCCURRENCES.schema.names} for h in held], OCCURRENCES.schema
        ),
        "models": pa.Table.from_pylist(models, MODELS.schema),
        "captures": pa.Table.from_pylist(captures, CAPTURES.schema),
    }


def publish(root: Path, world: Iterable[Region]) -> tuple[Warehouse, Snapshot]:
    """A warehouse at `root` whose first snapshot holds these tables."""
    warehouse = Warehouse.open(root, create=True)
    return warehouse, warehouse.publish(None, tables(world))


def connection(world: Iterable[Region]) -> duckdb.DuckDBPyConnection:
    """A connection that holds these tables."""
    made = duckdb.connect()
    sql._define_families(made)
    for name, table in tables(world).items():
        made.register(name, table)
    return made
