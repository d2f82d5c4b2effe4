"""The choice of tasks, step by step in SQL.

In go a connection to a snapshot and `Rules`, out comes a `Choice`: tasks, members and the funnel as plain rows. Each
file of `steps/` makes one table in the connection's memory, named in its first line, from the snapshot's tables and the
steps before it; so each can be looked at, and asked about, alone. Same rows and rules, same choice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from curate.passbench.rules import SELECTIONS, Rules
from warehouse.graph.record import GraphRecord
from warehouse.rows import records_from_table

STEPS = tuple(sorted((Path(__file__).parent / "steps").glob("*.sql")))
_RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Choice:
    """tasks, members: rows without the bench's name, of both splits. funnel: a row each filter, in order.

    curve: graph templates that hold each operator sequence, the most frequent first. head: how many are not the tail.
    """

    rules: Rules
    tasks: list[dict[str, Any]]
    members: list[dict[str, Any]]
    funnel: list[dict[str, Any]]
    curve: list[int]
    head: int

    def of(self, split: str) -> list[dict[str, Any]]:
        return [t for t in self.tasks if t["split"] == split]


def choose(connection: duckdb.DuckDBPyConnection, rules: Rules) -> Choice:
    """Run every step. The connection keeps their tables."""
    lay_down(connection, rules)
    for step in STEPS:
        connection.execute(step.read_text(encoding="utf-8"))
    found = {name: _rows(connection, name) for name in ("tasks", "members")}
    funnel = connection.table("funnel").order("step").to_arrow_table().to_pylist()
    curve = connection.table("curve").order("place").fetchall()
    names = connection.table("curve").columns
    templates, in_tail = names.index("templates"), names.index("in_tail")
    head = sum(not row[in_tail] for row in curve)
    return Choice(rules, found["tasks"], found["members"], funnel, [row[templates] for row in curve], head)


def devices(connection: duckdb.DuckDBPyConnection, mode: str) -> dict[str, int]:
    """Figures by device in a mode of torch.compile; GPUs and those with the most figures first."""
    text = (_RESULTS / "devices.sql").read_text(encoding="utf-8")
    return dict(connection.execute(text, {"mode": mode}).fetchall())


def records(connection: duckdb.DuckDBPyConnection) -> dict[str, GraphRecord]:
    """The graphs of all members of the choice that was made last, by hash. Raises RecordError."""
    text = (_RESULTS / "nodes.sql").read_text(encoding="utf-8")
    return records_from_table(connection.sql(text).to_arrow_table())


def wanted(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """After a choice: node rows of possible members without figures, and a column `priority`, least first."""
    return connection.sql((_RESULTS / "wanted.sql").read_text(encoding="utf-8")).to_arrow_table()


def lay_down(connection: duckdb.DuckDBPyConnection, rules: Rules) -> None:
    """The table `rules` of one row that every step reads."""
    takes = {f"takes_{s}": rules.select in ("mix", s) for s in SELECTIONS[1:]}
    row = pa.Table.from_pylist([{**asdict(rules), **takes}])
    connection.register("given_rules", row)
    connection.execute("CREATE OR REPLACE TABLE rules AS FROM given_rules")
    connection.unregister("given_rules")


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    text = (_RESULTS / f"{name}.sql").read_text(encoding="utf-8")
    return connection.sql(text).to_arrow_table().to_pylist()
