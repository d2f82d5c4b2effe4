"""`passnet plan`: what a refresh would do, without doing it."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from flows.commands import refresh as refresh_command
from flows.commands.options import HubAuthor, HubLibrary, HubLimit, HubSince, HubTask, Json, Warehouse

#: Families and libraries shown; `--json` holds all.
SHOWN = 20


def plan(
    source: Annotated[
        list[str] | None,
        typer.Option("--source", help="Source of models; may be given several times. All offline ones if left out."),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", help="File of source:name lines, a glob over source:name or name, or `demo`."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="At most this many models.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="With --limit: a random sample instead of the first.")
    ] = None,
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="How to trace, as for refresh. May be repeated.")
    ] = None,
    hub_task: HubTask = "",
    hub_library: HubLibrary = "",
    hub_author: HubAuthor = "",
    hub_since: HubSince = "",
    hub_limit: HubLimit = None,
    warehouse: Warehouse = "lake",
    as_json: Json = False,
) -> None:
    """Count what a refresh with the same options would do: models, configurations, captures, core-hours.

    Nothing is captured or published. With `--source hub` the Hub is asked, and what it answers is remembered.
    """
    from flows import hub
    from flows.foresight import foresee
    from flows.refresh import Request

    sources = tuple(source or ())
    request = Request(
        sources=sources,
        models=models,
        limit=limit,
        seed=seed,
        variants=tuple(variant or ("default",)),
        warehouse=warehouse,
        hub=hub.query(hub_task, hub_library, hub_author, hub_since, hub_limit, sources),
    )
    found = foresee(request, refresh_command.listing)
    if as_json:
        json.dump(found, sys.stdout)
        print()
        return
    _show(found)


def _show(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    print(
        f"{found['models']} models, {found['buildable']} of them buildable, {found['configurations']} distinct "
        f"configurations ({100 * found['removed_share']:.1f}% of the work is removed before tracing)"
    )
    print(
        f"{found['captures']} captures: {found['captured']} are there, {found['to_capture']} to make, about "
        f"{found['core_hours']} core-hours ({found['seconds_from']})"
    )
    for kind, count in found["not_captured"].items():
        print(f"  {kind}: {count}")
    for title, key in (("By library", "libraries"), ("By family", "families")):
        rows = found[key]
        table = Table(title=title, title_justify="left", header_style="bold", box=None, padding=(0, 1, 0, 0))
        for column in rows[0] if rows else ():
            table.add_column(column, justify="left" if column in ("library", "source", "family") else "right")
        for row in rows[:SHOWN]:
            table.add_row(*(escape(str(v)) for v in row.values()))
        console.print(table)
        if len(rows) > SHOWN:
            print(f"... and {len(rows) - SHOWN} more (--json lists all)")
