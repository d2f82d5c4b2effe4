"""`passnet refresh`: options, the progress display, and the closing report."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from typing import Annotated, Any

import typer

from flows.commands.options import HubAuthor, HubLibrary, HubLimit, HubSince, HubTask, Json, Warehouse

#: Ready questions that a refresh closes with, and how many rows of each answer.
ANSWERS = ("frequent_sequences", "models_sharing_a_graph", "graph_breaks_by_reason")
ANSWER_ROWS = 5
#: Seconds: a day, more than which no capture is worth, and no timer takes infinity.
MAX_DEADLINE = 86_400.0
#: Far beyond any machine: a typing error must not start a million processes.
MAX_WORKERS = 4096


def refresh(
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
        list[str] | None,
        typer.Option(
            "--variant",
            help="How to trace: default, train, symbolic, float16, bfloat16, cpu, joined by '+'. May be repeated.",
        ),
    ] = None,
    hub_task: HubTask = "",
    hub_library: HubLibrary = "",
    hub_author: HubAuthor = "",
    hub_since: HubSince = "",
    hub_limit: HubLimit = None,
    warehouse: Warehouse = "lake",
    workers: Annotated[
        int, typer.Option("--workers", min=0, max=MAX_WORKERS, help="Capture processes; 0: one for each core.")
    ] = 0,
    deadline: Annotated[
        float, typer.Option("--deadline", min=1.0, max=MAX_DEADLINE, help="Seconds that one capture may take.")
    ] = 120.0,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of an existing Dask scheduler (tcp://host:port).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Capture the selected models' graphs, deduplicate them, and publish a new snapshot.

    Only what is new is done. Kill it at any moment: the same command goes on.
    """
    from flows import hub
    from flows.progress import Display
    from flows.refresh import Request
    from flows.refresh import refresh as run

    request = Request(
        sources=tuple(source or ()),
        hub=hub.query(hub_task, hub_library, hub_author, hub_since, hub_limit, tuple(source or ())),
        models=models,
        limit=limit,
        seed=seed,
        variants=tuple(variant or ("default",)),
        warehouse=warehouse,
        workers=workers,
        deadline=deadline,
        scheduler=scheduler,
    )
    with Display() as display:
        found = run(request, display.started, listing)
    if as_json:
        json.dump(found.summary(), sys.stdout)
        print()
        return
    _close(request.warehouse, found, display.plan)


def listing(source: str) -> None:
    """Tell somebody who waits why nothing moves yet; a log needs no such line."""
    if sys.stderr.isatty():
        print(f"asking {source} for its models, which is remembered ...", file=sys.stderr, flush=True)


def _command() -> str:
    """What a user types to get this command again."""
    return "passnet" if shutil.which("passnet") else os.path.relpath(sys.argv[0])


def _close(warehouse: str, found: Any, work: Any) -> None:
    """What was captured, kept, dropped and why; three answers; what to type next."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from curate import ready
    from flows.prompt import print_result
    from flows.report import failure_table, source_table, summarise
    from warehouse.snapshot import Warehouse
    from warehouse.sql import connect

    connection = connect(warehouse, found.snapshot.id)
    console = Console(highlight=False)
    summary = summarise(Warehouse.open(warehouse), found.snapshot, work)
    for title, rows in (("Captured", source_table(summary)), ("Failed, by class", failure_table(summary))):
        if not rows:
            console.print(f"[bold]{title}[/bold]: none")
            continue
        table = Table(title=title, title_justify="left", header_style="bold", box=None, padding=(0, 1, 0, 0))
        for column in rows[0]:
            words = column in ("source", "class", "meaning")
            table.add_column(column, justify="left" if words else "right", overflow="fold")
        for row in rows:
            table.add_row(*(escape(str(v)) for v in row.values()))
        console.print(table)
    console.print(
        "kept: unique graphs; dropped: copies of one, whose places are kept; partial: some graphs, then a failure",
        style="dim",
    )
    console.print(
        f"snapshot {found.snapshot.sequence} ({found.snapshot.id[:12]}): {summary['tables'].get('graphs', 0)} unique "
        f"graphs, {summary['tables'].get('nodes', 0)} nodes in all; captures that were there already: {found.skipped}; "
        f"{found.seconds:.1f} s",
        soft_wrap=True,
    )
    for name in ANSWERS:
        query = ready.load(name)
        console.print(f"\n[bold]{query.question}[/bold]  (curate/queries/{name}.sql)", soft_wrap=True)
        print_result(query.run(connection, rows=ANSWER_ROWS))
    place = "" if warehouse == "lake" else f" --warehouse {shlex.quote(warehouse)}"
    some = connection.execute("SELECT graph_hash FROM graphs ORDER BY node_count, graph_hash LIMIT 1").fetchone()
    me = _command()
    console.print("\nNext:")
    console.print(f'  {me} sql{place} "SELECT * FROM op_frequency() LIMIT 10"', markup=False, soft_wrap=True)
    console.print(f"  {me} sql{place}   (a prompt; .queries lists ready questions)", markup=False, soft_wrap=True)
    if some:
        console.print(f"  {me} show {some[0][:12]}{place}", markup=False, soft_wrap=True)
