"""What is known of a Hub, durable after every page and every configuration: a crawl killed at any time goes on.

One SQLite file for each endpoint, shared by all warehouses of a user, since each question to a Hub should be asked
once. `PASSNET_HUB_CACHE` names its folder; `~/.cache/passnet/hub` otherwise.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

_STATEMENTS: dict[str, str] = dict(
    re.findall(r"-- name: (\w+)\n(.*?)(?=-- name:|\Z)", Path(__file__).with_name("ledger.sql").read_text(), re.DOTALL)
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Where a listing stands: the next page's URL, whether it is whole, rows so far, and which pass this is."""

    next: str = ""
    done: bool = False
    seen: int = 0
    round: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """A listed model. `grouping` is empty, and `kind` a failure class, where no configuration will be asked for."""

    name: str
    sha: str
    grouping: str
    kind: str
    message: str
    entry: str  # JSON: task, library, license, downloads, modified, base, parameters


@dataclass(frozen=True, slots=True)
class Config:
    """What asking one representative of a group gave: normalised JSON, or a failure class."""

    grouping: str
    name: str
    sha: str
    kind: str
    message: str
    config: str


def folder() -> Path:
    return Path(os.environ.get("PASSNET_HUB_CACHE") or Path.home() / ".cache" / "passnet" / "hub")


class Ledger:
    """The ledger of one endpoint."""

    def __init__(self, endpoint: str):
        where = folder()
        where.mkdir(parents=True, exist_ok=True)
        path = where / f"{xxhash.xxh3_64_hexdigest(endpoint.encode())}.sqlite"
        self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.executescript(_STATEMENTS["create"])

    def close(self) -> None:
        self._db.close()

    def listing(self, key: str) -> Listing:
        row = self._db.execute(_STATEMENTS["listing"], (key,)).fetchone()
        return Listing(row[0], bool(row[1]), row[2], row[3]) if row else Listing()

    def put_page(self, key: str, models: Iterable[Model], before: int, after: Listing) -> None:
        """A page and its cursor, together or not at all. A whole listing forgets what the pass before held."""
        with self._transaction():
            for place, m in enumerate(models, before):
                row = (m.name, m.sha, m.grouping, m.kind, m.message, m.entry)
                self._db.execute(_STATEMENTS["put_model"], row)
                self._db.execute(_STATEMENTS["put_member"], (key, place, after.round, m.name))
            if after.done:
                self._db.execute(_STATEMENTS["drop_members"], (key, after.round))
            self._db.execute(_STATEMENTS["set_listing"], (key, after.next, int(after.done), after.seen, after.round))

    def members(self, key: str) -> Iterator[Model]:
        """Models of a listing, in its order."""
        for row in self._db.execute(_STATEMENTS["members"], (key,)):
            yield Model(*row)

    def configs(self) -> dict[tuple[str, str], Config]:
        """Everything asked so far, by group and by the model asked."""
        return {(row[0], row[1]): Config(*row) for row in self._db.execute(_STATEMENTS["configs"])}

    def put_config(self, c: Config) -> None:
        self._db.execute(_STATEMENTS["put_config"], (c.grouping, c.name, c.sha, c.kind, c.message, c.config))

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


class _Transaction:
    def __init__(self, db: sqlite3.Connection):
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._db.execute("ROLLBACK" if kind else "COMMIT")
