"""What changed between two snapshots of a warehouse: rows a table, and what came and went, grouped.

In go a warehouse's address and two snapshots, out comes one dictionary of plain values (`between`). Only key columns
are read; the questions are the SQL files beside this one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb

from warehouse.schema import TABLES
from warehouse.snapshot import Snapshot, Warehouse

HERE = Path(__file__).parent
_COLUMNS = {
    "models": ["source", "name", "family"],
    "captures": ["capture_id", "source", "variant", "status"],
    "failures": ["capture_id", "class", "source"],
    "graphs": ["graph_hash", "structure_hash", "template_hash", "node_count"],
}


def between(url: str | os.PathLike[str], before: str | int, after: str | int | None = None) -> dict[str, Any]:
    """What `after` (the newest by default) has that `before` has not, and the other way round.

    Raises WarehouseError when a snapshot is unknown, or one of its files is missing, cut short or foreign.
    """
    warehouse = Warehouse.open(url)
    first, second = warehouse.snapshot(before), warehouse.snapshot(after)
    for snapshot in (first, second):
        warehouse.check(snapshot)
    return compare(warehouse, first, second)


def compare(warehouse: Warehouse, before: Snapshot | None, after: Snapshot) -> dict[str, Any]:
    """The same for snapshots at hand; None stands for the empty warehouse before the first."""
    with duckdb.connect(":memory:") as connection:
        for table, columns in _COLUMNS.items():
            empty = TABLES[table].schema.empty_table().select(columns)
            held = empty if before is None else warehouse.read(before, table, columns)
            connection.register(f"{table}_before", held)
            connection.register(f"{table}_after", warehouse.read(after, table, columns))
        changes = {name: _rows(connection, (HERE / f"{name}.sql").read_text()) for name in _COLUMNS}
    return {
        "before": {"id": before.id if before else None, "number": before.sequence if before else None},
        "after": {"id": after.id, "number": after.sequence},
        "rows": {
            name: {"before": before.rows(name) if before else 0, "after": after.rows(name)} for name in sorted(TABLES)
        },
        **changes,
    }


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    found: Any = connection.sql(query).to_arrow_table()
    return found.to_pylist()  # type: ignore[no-any-return]
