"""A snapshot as data: which immutable files make up each table, and the manifest that says so.

In go the bytes of `manifests/00000007.json`, out comes a `Snapshot`, and back. A manifest holds no clock reading, so
the same history gives the same bytes. Nothing in it is trusted: a path that leaves the warehouse, an unknown table or
a newer version is a WarehouseError that names the manifest and the mend.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import xxhash

from warehouse.schema import SCHEMA_VERSION, TABLES
from warehouse.storage import WarehouseError

FORMAT_VERSION = 1
_NAME = re.compile(r"(\d{8})\.json")
_HEX = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"data/([a-z_]+)/[0-9a-f]{32}(-\d{1,6})?\.parquet")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One immutable Parquet file. `bytes` and `hash` are None in measured tables, whose content is a clock's."""

    path: str
    rows: int
    bytes: int | None
    hash: str | None


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one table; `expected` rows were handed over, `written` rows were counted in the files."""

    expected: int
    written: int
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One published state of the warehouse.

    id is the xxh3-128 of all data-file hashes and row counts (measured tables left out): equal content, equal id.
    sequence counts publications from 1; parent is the id it was built on, None for the first.
    """

    id: str
    sequence: int
    parent: str | None
    tables: dict[str, TableFiles]

    @property
    def manifest(self) -> str:
        """Path of the manifest inside the warehouse."""
        return manifest_path(self.sequence)

    def rows(self, table: str) -> int:
        return self.tables[table].written

    def paths(self) -> set[str]:
        """Every data file the snapshot names."""
        return {file.path for table in self.tables.values() for file in table.files}


def manifest_path(sequence: int) -> str:
    return f"manifests/{sequence:08d}.json"


def sequence_of(name: str) -> int | None:
    """The sequence number of a manifest's file name; None for any other file (temporaries, strangers)."""
    match = _NAME.fullmatch(name)
    return int(match.group(1)) if match else None


def snapshot_id(tables: dict[str, TableFiles]) -> str:
    """The identity of the content: independent of parent, sequence and order of publication."""
    lines = [f"schema {SCHEMA_VERSION}"]
    for name in sorted(tables):
        if not TABLES[name].measured:
            lines += sorted(f"{name} {file.hash} {file.rows}" for file in tables[name].files)
    return xxhash.xxh3_128_hexdigest("\n".join(lines).encode())


def dump(snapshot: Snapshot) -> bytes:
    """The manifest's bytes: readable JSON, keys in a fixed order."""
    tables = {
        name: {
            "expected": table.expected,
            "written": table.written,
            "files": [
                {key: getattr(file, key) for key in ("path", "rows", "bytes", "hash") if getattr(file, key) is not None}
                for file in table.files
            ],
        }
        for name, table in sorted(snapshot.tables.items())
    }
    document = {
        "format_version": FORMAT_VERSION,
        "schema_version": SCHEMA_VERSION,
        "id": snapshot.id,
        "sequence": snapshot.sequence,
        "parent": snapshot.parent,
        "tables": tables,
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def load(data: bytes, name: str) -> Snapshot:
    """Read the manifest `name` (its path, for messages). WarehouseError for anything `dump` would not write."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise WarehouseError(f"the manifest {name} is not JSON or is cut short; {_MEND}") from error
    if not isinstance(document, dict):
        raise WarehouseError(f"the manifest {name} is not a JSON object; {_MEND}")
    for key, known in (("format_version", FORMAT_VERSION), ("schema_version", SCHEMA_VERSION)):
        version = document.get(key)
        if isinstance(version, int) and version > known:
            raise WarehouseError(
                f"the snapshot in {name} has {key} {version} and this passnet reads up to {known}: upgrade passnet, "
                "or name an older snapshot (`passnet snapshots` lists them)"
            )
        if version != known or isinstance(version, bool):
            raise WarehouseError(f"the manifest {name} has no readable {key}; {_MEND}")
    try:
        tables = {str(key): _table(str(key), value) for key, value in document["tables"].items()}
        snapshot = Snapshot(document["id"], document["sequence"], document["parent"], tables)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise WarehouseError(f"the manifest {name} is damaged ({type(error).__name__}: {error}); {_MEND}") from error
    if not _count(snapshot.sequence) or snapshot.manifest != name:
        raise WarehouseError(f"the manifest {name} calls itself number {snapshot.sequence!r}; {_MEND}")
    if snapshot.id != snapshot_id(tables) or not (snapshot.parent is None or _HEX.fullmatch(str(snapshot.parent))):
        raise WarehouseError(f"the manifest {name} was changed by hand: its id does not fit its files; {_MEND}")
    return snapshot


_MEND = "restore it from a copy, or delete that file: other snapshots stay as they are"


def _table(name: str, value: dict[str, Any]) -> TableFiles:
    if name not in TABLES:
        raise ValueError(f"unknown table {name[:60]!r}")
    table = TableFiles(value["expected"], value["written"], tuple(_file(name, file) for file in value["files"]))
    if not _count(table.expected) or not table.expected == table.written == sum(file.rows for file in table.files):
        raise ValueError(f"table {name}: row counts disagree")
    return table


def _file(table: str, value: dict[str, Any]) -> DataFile:
    path, rows = value["path"], value["rows"]
    match = _FILE.fullmatch(path)
    if match is None or match.group(1) != table:
        raise ValueError(f"file path {path[:80]!r} is not data/{table}/<hash>.parquet")
    if not _count(rows):
        raise ValueError(f"{path}: rows must be a count")
    if TABLES[table].measured:
        return DataFile(path, rows, None, None)
    if not _count(value["bytes"]) or not _HEX.fullmatch(value["hash"]):
        raise ValueError(f"{path}: bytes and hash are needed")
    return DataFile(path, rows, value["bytes"], value["hash"])


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
