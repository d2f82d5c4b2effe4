"""`passnet snapshots`: list them, and prune old ones."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from flows.commands.options import Json, Warehouse
from flows.errors import UserError

app = typer.Typer(help="List snapshots; `prune` deletes old ones.", invoke_without_command=True)


@app.callback()
def list_snapshots(context: typer.Context, warehouse: Warehouse = "lake", as_json: Json = False) -> None:
    """List the snapshots of a warehouse, oldest first."""
    context.obj = warehouse
    if context.invoked_subcommand is not None:
        return
    rows = _listing(warehouse)
    if as_json:
        json.dump(rows, sys.stdout, indent=1)
        print()
        return
    _print(rows)


@app.command("prune")
def prune(
    context: typer.Context,
    keep: Annotated[int, typer.Option("--keep", help="Newest snapshots to keep.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete; without it the command only says what it would delete.")
    ] = False,
    warehouse: Annotated[
        str | None, typer.Option("--warehouse", help="Folder or URL of the warehouse.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Delete all but the newest snapshots, and files that no snapshot names."""
    from warehouse.snapshot import Warehouse as Opened

    pruned = Opened.open(warehouse or context.obj or "lake").prune(keep=keep, dry_run=not yes)
    answer = {
        "deleted": yes,
        "snapshots": [s.sequence for s in pruned.snapshots],
        "files": len(pruned.files),
        "bytes": pruned.bytes,
    }
    if as_json:
        json.dump(answer, sys.stdout)
        print()
        return
    act = "deleted" if yes else "would delete (add --yes)"
    print(f"{act}: {len(pruned.snapshots)} snapshots, {len(pruned.files)} files, {pruned.bytes} bytes")


def _listing(warehouse: str) -> list[dict[str, Any]]:
    from warehouse.snapshot import Warehouse as Opened

    opened = Opened.open(warehouse)
    found = opened.listing()
    if not found:
        raise UserError(f"nothing was published in {opened.storage.url} yet: run `passnet refresh` first")
    return [_row(opened, number, held) for number, held in found]


def _row(opened: Any, number: int, held: Any) -> dict[str, Any]:
    tables = ("models", "captures", "failures", "graphs", "nodes")
    if isinstance(held, Exception):
        empty = dict.fromkeys(("id", "parent", "published", *tables))
        return {"number": number, **empty, "problem": str(held)}
    s = held
    return {
        "number": s.sequence,
        "id": s.id,
        "parent": s.parent,
        "published": datetime.fromtimestamp(
            datetime.now(UTC).timestamp() - opened.storage.age(s.manifest), UTC
        ).isoformat(timespec="seconds"),
        **{name: s.rows(name) for name in tables},
        "problem": None,
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0))
    for column in rows[0]:
        if column not in ("parent", "problem"):
            words = column in ("id", "published")
            table.add_column(column, justify="left" if words else "right", no_wrap=words)
    for row in rows:
        table.add_row(
            *(
                "" if v is None else str(v)[:12] if k == "id" else str(v)[:16] if k == "published" else str(v)
                for k, v in row.items()
                if k not in ("parent", "problem")
            )
        )
    console = Console(highlight=False)
    console.print(table)
    for row in rows:
        if row["problem"]:
            console.print(f"{row['number']}: {row['problem']}", markup=False, soft_wrap=True)
