"""Profiles made on a machine that has no warehouse: work goes there as a file and comes back as a folder.

`write_items` makes the file that `python -m curate.profile.run FILE FOLDER` reads; `receive` publishes that FOLDER.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curate.profile.results import Results
from flows.errors import UserError
from flows.profile import publish
from flows.refresh import alone
from flows.unprofiled import node_rows, unprofiled
from warehouse.snapshot import Warehouse


def write_items(warehouse_url: str, path: Path, device: str, mode: str, limit: int | None) -> dict[str, Any]:
    """Write the subgraphs of the newest snapshot that have no profile on `device`, the most wanted first.

    Returns {"items", "left"}: how many were written, and how many more there are. Raises UserError or WarehouseError.
    """
    warehouse = Warehouse.open(warehouse_url)
    snapshot = warehouse.snapshot()
    work = unprofiled(warehouse, snapshot, device, mode)
    chosen = work.order[:limit]
    if not chosen:
        raise UserError(f"every subgraph of snapshot {snapshot.sequence} has a profile on {device!r}: nothing to write")
    table = node_rows(warehouse, snapshot, work.nodes, chosen)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; give --items another file") from error
    return {"items": len(chosen), "left": len(work.order) - len(chosen)}


def receive(warehouse_url: str, folder: Path) -> dict[str, Any]:
    """Publish the rows of `folder` that the newest snapshot does not hold as they are.

    Returns {"received", "held", "unknown", "classes", "snapshot"}. `unknown` rows are of subgraphs that the snapshot
    lacks: they are left out. Raises UserError or WarehouseError.
    """
    if not folder.is_dir() or not any(folder.glob("profiles-*.jsonl")):
        raise UserError(f"{folder} holds no profiles-*.jsonl: give the folder that python -m curate.profile.run wrote")
    rows = Results(folder).rows()
    warehouse = Warehouse.open(warehouse_url)
    with alone(warehouse):
        snapshot = warehouse.snapshot()
        known = set(warehouse.read(snapshot, "graphs", ["graph_hash"])["graph_hash"].to_pylist())
        if "subgraphs" in snapshot.tables:
            known |= set(warehouse.read(snapshot, "subgraphs", ["subgraph_hash"])["subgraph_hash"].to_pylist())
        mine = [row for row in rows if row["subgraph_hash"] in known]
        new = [row for row, same in zip(mine, _held(warehouse, mine), strict=True) if not same]
        if new:
            snapshot = publish(warehouse, new)
    classes = Counter(str(row["class"]) for row in new)
    return {
        "received": len(new),
        "held": len(mine) - len(new),
        "unknown": len(rows) - len(mine),
        "classes": dict(sorted(classes.items())),
        "snapshot": snapshot.id,
    }


def _held(warehouse: Warehouse, rows: list[dict[str, Any]]) -> list[bool]:
    """Whether each row stands in the newest snapshot already, value by value."""
    snapshot = warehouse.snapshot()
    if "profiles" not in snapshot.tables or not rows:
        return [False] * len(rows)
    table = warehouse.read(snapshot, "profiles")
    held = {(r["subgraph_hash"], r["device"], r["mode"]): r for r in table.to_pylist()}
    cast = pa.Table.from_pylist(rows, schema=table.schema).to_pylist()
    return [held.get((r["subgraph_hash"], r["device"], r["mode"])) == r for r in cast]
