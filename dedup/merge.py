"""From staged captures to the rows of a new snapshot: one graph of each kind kept, every occurrence of all.

In: ids of staged captures and the current snapshot. Dask's workers read the footers of the staged files, find the rows
to keep by their keys alone (`dedup.least`), then read the kept graphs' nodes and write them as data files; the process
that merges holds columns, never the rows of a capture or a node. Which rows are kept and where files are cut depends on
the captures alone, so neither chunks nor workers change a byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dedup.least import kept_rows, rank
from warehouse import staging
from warehouse.manifest import DataFile
from warehouse.schema import TABLES
from warehouse.snapshot import Piece, Snapshot, Warehouse
from warehouse.storage import open_storage

#: Staged files whose footers one Dask task reads.
CHUNK = 256
#: Node rows that are read and written as one piece.
PIECE_ROWS = 2_000_000
#: Rows of `models` written as one piece: a configuration is a text of kilobytes.
MODEL_ROWS = 100_000
_BUILDS = ("empty", "meta", "real")
_KEPT = ["graph_hash", "capture_id", "node_count"]

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge found. `damaged` names staged captures whose files are not whole: they must be made again."""

    snapshot: Snapshot | None
    graphs: int
    unique_graphs: int
    new_graphs: int
    damaged: tuple[str, ...]


def priority(capture: dict[str, Any]) -> int:
    """How gladly a capture's graphs are kept, least first: complete before partial, then fewer real values."""
    incomplete = capture["status"] != "complete"
    build = capture["build"]
    return len(_BUILDS) * incomplete + (_BUILDS.index(build) if build in _BUILDS else len(_BUILDS) - 1)


def merge(
    warehouse: Warehouse,
    parent: Snapshot | None,
    captures: Iterable[str],
    models: Iterable[pa.Table],
    hub_models: pa.Table | None = None,
) -> Merged:
    """Publish the staged `captures`, and rows of `models` and `hub_models` that `parent` lacks, on top of it.

    Runs on the Dask client that is current, else in this process. When a staged file is not whole nothing is
    published: its capture is reported in `damaged`, its file deleted.
    """
    wanted = sorted(set(captures))
    url = warehouse.storage.url
    chunks = [wanted[i : i + CHUNK] for i in range(0, len(wanted), CHUNK)]
    scheduler = {} if len(chunks) > 1 else {"scheduler": "synchronous"}
    read = [dask.delayed(_read, nout=3)(url, chunk) for chunk in chunks]
    kept_of = kept_rows([keys for keys, _, _ in read]) if read else []
    taken = [dask.delayed(_take)(tables, kept) for (_, tables, _), kept in zip(read, kept_of, strict=True)]
    found, lost = dask.compute(taken, [damaged for _, _, damaged in read], **scheduler)
    if damaged := tuple(c for part in lost for c in part):
        staging.remove(warehouse.storage, damaged)
        return Merged(None, 0, 0, 0, damaged)
    new: dict[str, Any] = {name: _concat(name, [tables[name] for tables in found]) for name in staging.HEADER_TABLES}
    unique = new["graphs"].num_rows
    new["graphs"] = graphs = _unknown(warehouse, parent, new["graphs"])
    try:
        with warehouse.unpruned():
            new["nodes"] = _node_files(warehouse, graphs.select(_KEPT), scheduler)
            new["models"] = _new_rows("models", warehouse, parent, models)
            if hub_models is not None:
                new["hub_models"] = _new_rows("hub_models", warehouse, parent, [hub_models])
            snapshot = warehouse.publish(parent, new)
    except staging.StagingError as error:  # whole by its footer, damaged inside: found when its nodes were read
        staging.remove(warehouse.storage, [error.capture_id])
        return Merged(None, 0, 0, 0, (error.capture_id,))
    staging.remove(warehouse.storage, wanted)
    return Merged(snapshot, new["occurrences"].num_rows, unique, graphs.num_rows, ())


def _read(url: str, captures: list[str]) -> tuple[pa.Table, Tables, list[str]]:
    """Of some staged captures: the keys of their graphs, all rows but nodes, and which of them are not whole."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in staging.HEADER_TABLES}
    damaged = []
    for capture, header in staging.headers(open_storage(url), captures):
        if header is None:
            damaged.append(capture)
            continue
        for name, held in header.items():
            rows[name].extend(held)
    first = {row["capture_id"]: priority(row) for row in rows["captures"]}
    keys = pa.table(
        {
            "graph_hash": pa.array([row["graph_hash"] for row in rows["graphs"]], pa.string()),
            "rank": pa.array(
                [rank(first[row["capture_id"]], row["capture_id"], row["graph_index"]) for row in rows["graphs"]],
                pa.string(),
            ),
        }
    )
    return keys, {name: staging.table(name, held) for name, held in rows.items()}, damaged


def _take(tables: Tables, kept: pa.Array) -> Tables:
    return {**tables, "graphs": tables["graphs"].take(kept)}


def _concat(name: str, parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([TABLES[name].schema.empty_table(), *parts])


def _unknown(warehouse: Warehouse, parent: Snapshot | None, graphs: pa.Table) -> pa.Table:
    """The graphs that the snapshot does not hold."""
    if parent is None:
        return graphs
    known = warehouse.read(parent, "graphs", ["graph_hash"])["graph_hash"].combine_chunks()
    return graphs.filter(pc.invert(pc.is_in(graphs["graph_hash"], known)))


def _node_files(warehouse: Warehouse, kept: pa.Table, scheduler: dict[str, str]) -> list[DataFile]:
    """Data files of the kept graphs' nodes, cut in graph_hash order: the same cuts whoever made the captures."""
    ordered = kept.sort_by("graph_hash")
    pieces = [ordered.slice(start, stop - start) for start, stop in _cuts(ordered["node_count"].to_numpy())]
    scheduler = scheduler if len(pieces) <= 1 else {}
    written = dask.compute([dask.delayed(_write_nodes)(warehouse.storage.url, p) for p in pieces], **scheduler)[0]
    return [file for files in written for file in files]


def _cuts(counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of graphs, each ending with the graph that brings it to `PIECE_ROWS`."""
    ends, start, before = np.cumsum(counts, dtype=np.int64), 0, 0
    while start < len(ends):
        stop = min(len(ends), int(np.searchsorted(ends, before + PIECE_ROWS)) + 1)
        yield start, stop
        start, before = stop, int(ends[stop - 1])


def _write_nodes(url: str, piece: pa.Table) -> list[DataFile]:
    warehouse = Warehouse(open_storage(url))
    of_capture: dict[str, list[str]] = {}
    for graph, capture in zip(piece["graph_hash"].to_pylist(), piece["capture_id"].to_pylist(), strict=True):
        of_capture.setdefault(capture, []).append(graph)
    parts = [staging.nodes(warehouse.storage, capture, hashes) for capture, hashes in sorted(of_capture.items())]
    return warehouse.write_ahead("nodes", pa.concat_tables(parts))


def _new_rows(name: str, warehouse: Warehouse, parent: Snapshot | None, models: Iterable[pa.Table]) -> Iterator[Piece]:
    """The rows of a table whose keys the snapshot does not hold, in pieces of about `MODEL_ROWS`."""
    key = list(TABLES[name].sort)
    known = None if parent is None else warehouse.read(parent, name, key)
    waiting: list[pa.Table] = []
    for table in models:
        if known is not None:
            rows = table.select(key).append_column("row", pa.array(range(table.num_rows), pa.int64()))
            new = rows.join(known, key, join_type="left anti", use_threads=False)["row"]
            table = table.take(new.take(pc.sort_indices(new)))
        waiting.append(table)
        if sum(part.num_rows for part in waiting) >= MODEL_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
