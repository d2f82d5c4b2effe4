"""`passnet doctor`: what is here, what is missing, and how to mend it."""

from __future__ import annotations

import json
import sys

import typer

from flows.commands.options import Json, Warehouse
from flows.errors import MENDABLE, OK


def doctor(warehouse: Warehouse = "lake", as_json: Json = False) -> None:
    """Check versions, device, disk and isolation. Exit code 2 when a refresh could not run."""
    from flows.doctor import examine

    checks = examine(warehouse)
    failed = any(c.state == "missing" for c in checks)
    if as_json:
        rows = [{"check": c.name, "state": c.state, "found": c.found, "mend": c.mend} for c in checks]
        json.dump({"ok": not failed, "checks": rows}, sys.stdout, indent=1)
        print()
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(header_style="bold")
        for column in ("check", "state", "found", "mend"):
            table.add_column(column, overflow="fold")
        colours = {"ok": "green", "note": "yellow", "missing": "red"}
        for c in checks:
            table.add_row(c.name, f"[{colours[c.state]}]{c.state}[/]", escape(c.found), escape(c.mend))
        Console(highlight=False).print(table)
    raise typer.Exit(MENDABLE if failed else OK)
