"""`passnet sql`: one query, or a prompt."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from flows.commands.options import Json, SnapshotName, Warehouse
from flows.errors import UserError


def sql(
    query: Annotated[
        str | None, typer.Argument(help="SQL to run; `-` reads it from stdin; a prompt if left out.")
    ] = None,
    warehouse: Warehouse = "lake",
    snapshot: SnapshotName = None,
    as_json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV on stdout.")] = False,
) -> None:
    """Ask a warehouse in SQL (DuckDB, read-only)."""
    import duckdb

    from flows.prompt import interactive, print_result
    from warehouse.sql import connect, damage_named, first_line

    if as_json and csv:
        raise UserError("--json and --csv exclude each other: give one of them")
    connection = connect(warehouse, snapshot)
    if query is None and sys.stdin.isatty() and not (as_json or csv):
        interactive(connection)
        return
    text = sys.stdin.read() if query in (None, "-") else query
    try:
        (text or "").encode()
    except UnicodeEncodeError as error:
        raise UserError("the query is not UTF-8 text: save or type it as UTF-8") from error
    try:
        with damage_named(warehouse, snapshot):
            answer = connection.execute(text) if text and text.strip() else None
            if answer is None or answer.description is None:  # nothing but blanks, semicolons and comments
                raise UserError('the query is empty: passnet sql "SELECT count(*) FROM graphs"')
            print_result(answer, "json" if as_json else "csv" if csv else "table")
    except duckdb.Error as error:
        raise UserError(f"{first_line(error)}; `passnet sql` without a query lists tables with .tables") from error
