"""`passnet show`: one graph as code, as a drawing, or as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.options import Json, SnapshotName, Warehouse
from flows.errors import UserError

#: Matches that a refusal of an ambiguous beginning names.
SHOWN = 5


def show(
    graph_hash: Annotated[str, typer.Argument(metavar="HASH", help="graph_hash, or a unique beginning of one.")],
    svg: Annotated[bool, typer.Option("--svg", help="Draw the graph as SVG.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file instead of stdout.")] = None,
    warehouse: Warehouse = "lake",
    snapshot: SnapshotName = None,
    as_json: Json = False,
) -> None:
    """Print a stored graph as readable code; with --svg, draw it."""
    from warehouse.render import code
    from warehouse.render import svg as draw
    from warehouse.sql import connect, damage_named

    if svg and as_json:
        raise UserError("--svg and --json exclude each other: give one of them")
    connection = connect(warehouse, snapshot)
    with damage_named(warehouse, snapshot):
        found = full_hash(connection, graph_hash)
        rows: Any = connection.sql("SELECT * FROM nodes WHERE graph_hash = $hash", params={"hash": found})
        table = rows.to_arrow_table()
    record = _record(table, found)
    if svg:
        text = draw(record, found)
    elif as_json:
        row: Any = connection.sql(
            "SELECT * FROM graphs WHERE graph_hash = $hash", params={"hash": found}
        ).to_arrow_table()
        text = json.dumps({**row.to_pylist()[0], "nodes": _nodes(record)}, indent=1)
    else:
        text = code(record, f"graph_{found[:12]}")
    if out is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    try:
        out.write_text(text)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}; give another --out") from error
    print(out)


def _record(table: Any, graph_hash: str) -> Any:
    """The graph of these rows. UserError for rows that no writer of ours has written."""
    from warehouse.graph.record import RecordError
    from warehouse.graph.validate import validate
    from warehouse.rows import records_from_table

    try:
        record = records_from_table(table)[graph_hash]
        validate(record)
    except (RecordError, LookupError) as error:
        raise UserError(
            f"the stored graph {graph_hash} is damaged: {error}; restore the warehouse from a copy, or capture it anew"
        ) from error
    return record


def full_hash(connection: Any, beginning: str) -> str:
    """The one graph_hash that begins so. UserError when none does, or several do."""
    if not beginning or not all(c in "0123456789abcdefABCDEF" for c in beginning):
        raise UserError(f"{beginning[:60]!r} is not a graph_hash: give up to 32 hex digits, as in the table `graphs`")
    query = "SELECT graph_hash FROM graphs WHERE starts_with(graph_hash, $text) ORDER BY 1 LIMIT 6"
    rows = [row[0] for row in connection.execute(query, {"text": beginning.lower()}).fetchall()]
    if not rows:
        raise UserError(f'no graph begins with {beginning!r}: `passnet sql "SELECT graph_hash FROM graphs"` lists them')
    if len(rows) > 1:
        raise UserError(
            f"several graphs begin with {beginning!r}: {', '.join(r[:16] for r in rows[:SHOWN])}; give more digits"
        )
    return str(rows[0])


def _nodes(record: Any) -> list[dict[str, Any]]:
    return [
        {"scope": scope, "idx": idx, **{k: v for k, v in asdict(node).items() if v is not None}}
        for scope, graph in record.walk()
        for idx, node in enumerate(graph.nodes)
    ]
