"""What a release says of itself: the shards written, the counts of its snapshot, the licences of its models.

In go a read-only connection to the snapshot and the shards, out comes `Contents`, which the card and the Croissant
metadata are made from. Nothing here reads a clock: equal snapshots give equal contents.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warehouse.snapshot import Snapshot

HERE = Path(__file__).parent

#: The licence identifiers that a dataset card may state; any other text there is refused by the Hub.
LICENCES = frozenset((HERE / "licences.txt").read_text(encoding="utf-8").split())


@dataclass(frozen=True, slots=True)
class Shard:
    """One Parquet file of a release; `path` is relative to its folder."""

    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """shards: by table, those with rows only. figures: `figures.sql`. licences, origins: rows of the files so named."""

    snapshot: Snapshot
    shards: dict[str, tuple[Shard, ...]]
    figures: dict[str, Any]
    licences: list[dict[str, Any]]
    origins: list[dict[str, Any]]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shards in self.shards.values() for shard in shards)

    @property
    def bytes(self) -> int:
        return sum(shard.bytes for shards in self.shards.values() for shard in shards)

    @property
    def licence_identifiers(self) -> list[str]:
        """Identifiers for the card, sorted: `other` for a licence that has none, `unknown` where none is stated."""
        stated = {row["license"] for row in self.licences} or {""}
        return sorted({"unknown" if not s else s if s in LICENCES else "other" for s in stated})

    @property
    def captured_on(self) -> datetime.date | None:
        """Day (UTC) on which the newest capture began; None for a snapshot without timings."""
        moment = self.figures["captured_ms"]
        return None if moment is None else datetime.datetime.fromtimestamp(moment / 1000, datetime.UTC).date()

    def summary(self) -> dict[str, Any]:
        """The object that `export hf --json` ends with."""
        tables = {
            name: {"rows": sum(s.rows for s in shards), "files": len(shards), "bytes": sum(s.bytes for s in shards)}
            for name, shards in self.shards.items()
        }
        return {
            "snapshot": self.snapshot.id,
            "sequence": self.snapshot.sequence,
            "rows": self.rows,
            "bytes": self.bytes,
            "tables": tables,
            "figures": {key: value for key, value in self.figures.items() if key != "captured_ms"},
            "licenses": {row["license"]: row["models"] for row in self.licences},
        }


def contents(connection: Any, snapshot: Snapshot, shards: dict[str, tuple[Shard, ...]]) -> Contents:
    """Ask the snapshot behind `connection` (see `warehouse.sql.connect`) for what a release says of it."""
    return Contents(snapshot, shards, _ask(connection, "figures")[0], *(_ask(connection, n) for n in _LISTS))


_LISTS = ("licences", "origins")


def _ask(connection: Any, name: str) -> list[dict[str, Any]]:
    found = connection.execute((HERE / f"{name}.sql").read_text(encoding="utf-8"))
    columns = [column[0] for column in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
