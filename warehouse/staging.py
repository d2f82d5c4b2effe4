"""Finished captures that no snapshot holds yet, one file each: what makes a refresh resumable.

    staging/<first 2 hex digits>/<capture_id>.parquet

The file's rows are the nodes of the capture's graphs; the rows of the other tables (captures, graphs, occurrences,
failures, timings) stand in its metadata as JSON, so that deduplication reads footers only. A file appears by one
rename of durable bytes: a capture is finished or it is not. Once a snapshot holds a capture, its file is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.schema import NODES, TABLES
from warehouse.storage import TEMPORARY, Storage, durable, explained

FOLDER = "staging"
#: Tables whose rows travel in the metadata.
HEADER_TABLES = ("captures", "graphs", "occurrences", "failures", "timings")
_KEY = b"passnet.capture"

Rows = dict[str, list[dict[str, Any]]]


class StagingError(Exception):
    """A staged file cannot be used: it is not finished work, and the capture `capture_id` must be made again."""

    def __init__(self, capture_id: str, problem: str):
        super().__init__(f"staged capture {capture_id} {problem}")
        self.capture_id, self.problem = capture_id, problem

    def __reduce__(self) -> tuple[type[StagingError], tuple[str, str]]:
        return type(self), (self.capture_id, self.problem)  # it travels from workers


def path_of(capture_id: str) -> str:
    return f"{FOLDER}/{capture_id[:2]}/{capture_id}.parquet"


def write(storage: Storage, capture_id: str, rows: Mapping[str, list[dict[str, Any]]], nodes: pa.Table) -> None:
    """Make a capture's result durable. WarehouseError when the warehouse cannot be written."""
    unknown = set(rows) - set(HEADER_TABLES)
    if unknown:
        raise ValueError(f"not a table of a staged capture: {sorted(unknown)[0]}")
    header = json.dumps({name: rows.get(name, []) for name in HEADER_TABLES}, default=_plain)
    table = nodes.replace_schema_metadata({**(NODES.schema.metadata or {}), _KEY: header.encode()})
    with durable(storage, path_of(capture_id), "stage a capture") as sink:
        pq.write_table(table, sink, compression="zstd", compression_level=1, write_page_checksum=True)


def finished(storage: Storage) -> set[str]:
    """Ids of all staged captures."""
    return {
        name.removesuffix(".parquet")
        for part in storage.list(FOLDER)
        if not part.startswith(TEMPORARY)
        for name in storage.list(f"{FOLDER}/{part}")
        if name.endswith(".parquet")
    }


def header(storage: Storage, capture_id: str) -> Rows:
    """The rows that a staged capture adds to each table but `nodes`. StagingError when the file is not whole."""
    with _opened(storage, capture_id) as file:
        return _header(file, capture_id)


def nodes(storage: Storage, capture_id: str, graph_hashes: Iterable[str]) -> pa.Table:
    """The node rows of some of its graphs. StagingError when the file is not whole or lacks one of them."""
    wanted = sorted(set(graph_hashes))
    with _opened(storage, capture_id) as file:
        try:
            table = file.read(columns=NODES.schema.names).cast(NODES.schema)
        except (OSError, pa.ArrowException) as error:
            raise StagingError(capture_id, f"cannot be read: {error}") from error
    found = table.filter(pc.is_in(table["graph_hash"], pa.array(wanted, pa.string())))
    if set(pc.unique(found["graph_hash"]).to_pylist()) != set(wanted):
        raise StagingError(capture_id, "lacks a graph that its header names")
    return found


def remove(storage: Storage, capture_ids: Iterable[str]) -> None:
    for capture_id in capture_ids:
        storage.remove(path_of(capture_id))


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a header as an Arrow table of the warehouse's schema."""
    schema = TABLES[name].schema
    times = [f.name for f in schema if pa.types.is_timestamp(f.type)]
    parsed = [{**row, **{t: datetime.fromisoformat(row[t]) for t in times if row.get(t)}} for row in rows]
    return pa.Table.from_pylist(parsed, schema=schema)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a staged row cannot hold a {type(value).__name__}")


class _opened:
    """A staged Parquet file, opened and closed; what is wrong with it becomes a StagingError."""

    def __init__(self, storage: Storage, capture_id: str):
        self.storage, self.capture_id = storage, capture_id

    def __enter__(self) -> pq.ParquetFile:
        try:
            self.stream = self.storage.read(path_of(self.capture_id))
        except FileNotFoundError as error:
            raise StagingError(self.capture_id, f"is gone: {error}") from error
        except OSError as error:  # the disk's or network's trouble: the file may well be whole, so it must stay
            with explained(self.storage, f"read staged capture {self.capture_id}"):
                raise error
        try:
            return pq.ParquetFile(self.stream, page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            self.stream.close()
            raise StagingError(self.capture_id, f"is not whole: {error}") from error

    def __exit__(self, *_: object) -> None:
        self.stream.close()


def _header(file: pq.ParquetFile, capture_id: str) -> Rows:
    text = (file.schema_arrow.metadata or {}).get(_KEY)
    try:
        rows = json.loads(text or b"")
        whole = all(_fits(name, rows[name], capture_id) for name in HEADER_TABLES) and len(rows["captures"]) == 1
    except (ValueError, TypeError, LookupError, AttributeError, pa.ArrowException):
        whole = False
    if not whole:
        raise StagingError(capture_id, "has no valid header")
    return {name: rows[name] for name in HEADER_TABLES}


def _fits(name: str, rows: list[dict[str, Any]], capture_id: str) -> bool:
    """Whether rows are the capture's own and of the table's types, with the columns that merging reads."""
    found = table(name, rows)
    keys = {"captures": ["status", "build"], "graphs": ["node_count"]}.get(name, []) + list(TABLES[name].sort)
    return found["capture_id"].to_pylist() == [capture_id] * len(rows) and not any(found[k].null_count for k in keys)


def headers(storage: Storage, capture_ids: Iterable[str]) -> Iterator[tuple[str, Rows | None]]:
    """(capture id, its header, or None when the file is not whole) for each id."""
    for capture_id in capture_ids:
        try:
            yield capture_id, header(storage, capture_id)
        except StagingError:
            yield capture_id, None
