"""A capture as rows, and its staged file: what a finished capture leaves behind, whether it succeeded or not.

Nothing here needs torch, so the owner of a worker pool can write the row of a model that took its worker with it.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa

from dedup.hashes import HASH_VERSION
from extract.model import Capture, CapturedGraph, Failure, ModelRef, Variant, capture_id
from warehouse import staging
from warehouse.graph.record import RECORD_VERSION
from warehouse.rows import graph_columns, node_table
from warehouse.storage import open_storage


def payload(ref: ModelRef, variant: Variant, warehouse: str) -> dict[str, Any]:
    """What a worker needs to know of its job, as JSON-ready data."""
    return {"ref": asdict(ref), "variant": variant.name, "warehouse": warehouse}


def stage(found: Capture, warehouse: str, started: datetime, seconds: float) -> dict[str, Any]:
    """Make a capture durable. Returns a summary: capture_id, status, class, graphs, nodes, seconds."""
    rows = rows_of(found, started, seconds)
    nodes: pa.Table = node_table({g.graph_hash: g.record for g in found.graphs}.items())
    row = rows["captures"][0]
    staging.write(open_storage(warehouse), row["capture_id"], rows, nodes)
    return {
        "capture_id": row["capture_id"],
        "source": row["source"],
        "name": row["name"],
        "status": row["status"],
        "class": found.failure.kind if found.failure else None,
        "graphs": len(found.graphs),
        "nodes": nodes.num_rows,
        "seconds": seconds,
    }


def stage_failure(given: dict[str, Any], failure: Failure, seconds: float, peak_mb: float) -> dict[str, Any]:
    """Stage the capture of a job whose worker did not survive it, as `stage` does."""
    ref, variant = ModelRef(**given["ref"]), Variant.parse(given["variant"])
    lost = Capture(ref, variant, "", (), (), failure, 0, {}, peak_mb)
    return stage(lost, given["warehouse"], datetime.now(UTC), seconds)


def rows_of(found: Capture, started: datetime, seconds: float) -> staging.Rows:
    """The rows that a capture adds to each table but `nodes`."""
    ref, variant = found.ref, found.variant
    identity = capture_id(ref.config_hash, variant, HASH_VERSION)
    status = "complete" if found.failure is None else ("partial" if found.graphs else "failed")
    where = {"capture_id": identity, "config_hash": ref.config_hash}
    model = {"source": ref.source, "name": ref.name, "variant": variant.name}
    rows: staging.Rows = {
        "captures": [
            {
                **where,
                **model,
                "mode": variant.mode,
                "shapes": variant.shapes,
                "dtype": variant.dtype,
                "device": variant.device,
                "status": status,
                "build": found.build,
                "verified": found.verified if found.graphs else "",
                "graph_count": len(found.graphs),
                "break_count": len(found.breaks),
                "break_reasons": list(found.breaks),
                "node_count": sum(g.record.num_nodes() for g in found.graphs),
                "parameters": found.parameters,
                "torch_version": metadata.version("torch").split("+")[0],
                "library_version": ref.revision,
                "hash_version": HASH_VERSION,
                "record_version": RECORD_VERSION,
            }
        ],
        "graphs": list({g.graph_hash: _graph_row(g, identity) for g in reversed(found.graphs)}.values()),
        "occurrences": [{"graph_hash": g.graph_hash, "graph_index": g.index, **where} for g in found.graphs],
        "failures": [],
        "timings": [
            {
                "capture_id": identity,
                "seconds": seconds,
                "build_seconds": found.seconds.get("build", 0.0) + found.seconds.get("inputs", 0.0),
                "trace_seconds": found.seconds.get("trace", 0.0),
                "record_seconds": found.seconds.get("record", 0.0),
                "peak_mb": found.peak_mb or _peak_mb(),
                "started_at": started,
            }
        ],
    }
    if found.failure is not None:
        failure = found.failure
        rows["failures"].append(
            {
                **where,
                **model,
                "class": failure.kind,
                "stage": failure.stage,
                "exception": failure.exception,
                "message": failure.message,
                "place": failure.place,
            }
        )
    return rows


def _graph_row(graph: CapturedGraph, identity: str) -> dict[str, Any]:
    return {
        "graph_hash": graph.graph_hash,
        "structure_hash": graph.structure_hash,
        "template_hash": graph.template_hash,
        "op_hash": graph.op_hash,
        "capture_id": identity,
        "graph_index": graph.index,
        "hash_version": HASH_VERSION,
        **graph_columns(graph.record),
    }


def _peak_mb() -> float:
    """Peak resident memory of this process since the pool last reset it, MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    return 0.0
