"""What the pages show, read from a warehouse: boards of comparable rows, their tasks, and the cases behind them.

In goes a connection of `warehouse.sql.connect`, out come `Board`s. One board is one bench, device, clock, score
configuration and set of cases; rows that differ in one of these never stand in one table (docs/scores.md).
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from evaluate.score.configuration import ScoreConfiguration
from evaluate.score.samples import sample_of

HERE = Path(__file__).parent
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One submission of a board. row: of the macro `leaderboard`, JSON columns read. speedups: of correct cases, by the
    board's clock; `counted`: cases that count, failures included. by_task: its score rows. cases: its evaluations."""

    row: Row
    speedups: tuple[float, ...]
    counted: int
    by_task: dict[str, Row]
    cases: list[Row]

    @property
    def key(self) -> str:
        """Names it inside its board."""
        return f"{self.row['submission']} {self.row['lowering']} {self.row['run']}"

    @property
    def label(self) -> str:
        """For a reader: its name, with how its graph was run where that is not the usual way."""
        more = "" if self.row["lowering"] == "direct" else f" ({self.row['lowering']})"
        return f"{self.row['submission_name']}{more}"


@dataclass(frozen=True, slots=True)
class Board:
    """Rows that may be compared, best first. strata: score rows by stratum and entry's key."""

    bench: str
    device: str
    clock: str
    configuration: ScoreConfiguration
    configuration_id: str
    cases: str
    entries: tuple[Entry, ...]
    strata: dict[str, dict[str, Row]]

    @property
    def timed(self) -> bool:
        """Whether its rows claim anything about time."""
        return self.clock != "none"

    @property
    def slug(self) -> str:
        """A file name and anchor, from nothing that data could choose."""
        return slug(
            f"{self.device} {self.clock}", self.bench, self.device, self.clock, self.configuration_id, self.cases
        )

    @property
    def tasks(self) -> list[str]:
        return sorted({name for e in self.entries for name in (c["task"] for c in e.cases)})

    @property
    def layers_differ(self) -> bool:
        """Whether some rows were judged behind fewer layers than others."""
        return len({tuple(sorted(e.row["layers"])) for e in self.entries}) > 1


def slug(readable: str, *identity: str) -> str:
    """`readable` cut to letters and digits, and a hash of `identity`: a safe file name of its own."""
    words = re.sub(r"[^a-z0-9]+", "-", readable.lower()).strip("-")[:40]
    return f"{words}-{hashlib.blake2b(json.dumps(identity).encode(), digest_size=6).hexdigest()}".lstrip("-")


def boards(connection: duckdb.DuckDBPyConnection) -> list[Board]:
    """All boards of a snapshot: GPUs before CPUs, those of many tasks first."""
    return [_board(connection, held) for held in _ask(connection, "boards")]


def published() -> dict[str, Any]:
    """The published leaderboard's rows and where they are from."""
    return tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))


def _board(connection: duckdb.DuckDBPyConnection, held: Row) -> Board:
    configuration = ScoreConfiguration.from_json(held.pop("configuration_json"))
    rows = _ask(connection, "rows", **held)
    runs = sorted({row["run"] for row in rows})
    same = {k: held[k] for k in ("clock", "configuration", "bench", "device")}
    scores = _ask(connection, "tasks", **same, runs=runs)
    cases = _ask(connection, "cases", runs=runs)
    entries = tuple(_entry(row, scores, cases, configuration) for row in rows)
    strata: dict[str, dict[str, Row]] = {}
    for entry in entries:
        for score in scores:
            if score["level"] == "stratum" and _of(score, entry.row):
                strata.setdefault(score["name"], {})[entry.key] = score
    shown = (held["bench"], held["device"], held["clock"], configuration, held["configuration"], held["cases"])
    return Board(*shown, entries, strata)


def _entry(row: Row, scores: list[Row], cases: list[Row], configuration: ScoreConfiguration) -> Entry:
    read = {**row, "fast": json.loads(row["fast"]), "curve": json.loads(row["curve"])}
    read["verdicts"] = json.loads(row["verdicts"])
    mine = [c for c in cases if _of(c, row) and c["lowering"] == row["lowering"]]
    samples = [s for c in mine if (s := sample_of(c, configuration)) is not None]
    correct = (s.speedup for s in samples if s.correct_t is not None and s.correct_t <= configuration.correct_at)
    by_task = {s["name"]: s for s in scores if s["level"] == "task" and _of(s, row)}
    return Entry(read, tuple(sorted(s for s in correct if s is not None)), len(samples), by_task, mine)


def _of(score: Row, row: Row) -> bool:
    return bool(score["run"] == row["run"] and score["submission"] == row["submission"])


def _ask(connection: duckdb.DuckDBPyConnection, name: str, **values: Any) -> list[Row]:
    answer = connection.execute((HERE / f"{name}.sql").read_text(encoding="utf-8"), values or None)
    columns = [column[0] for column in answer.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]
