"""From staged captures to the rows of a new snapshot: one graph of each kind kept, every occurrence of all.

In: ids of staged captures and the current snapshot. Dask reads the footers of the staged files in parallel and
reduces their keys to the least row of each graph_hash by (priority, capture_id, graph_index); only the winners' nodes
are read then. The least is a minimum, so neither partitions nor workers change the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa

from warehouse import staging
from warehouse.schema import TABLES
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import open_storage

#: Staged files whose footers one Dask task reads.
CHUNK = 256
#: Node rows that are read and written as one piece.
PIECE_ROWS = 2_000_000
_BUILDS = ("empty", "meta", "real")


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


def rank(first: int, capture_id: str, graph_index: int) -> str:
    """(priority, id) as one text that sorts alike, so that the least row is a plain minimum."""
    return f"{first:02d}|{capture_id}|{graph_index:09d}"


def least(keys: pd.DataFrame, partitions: int) -> pd.Series:
    """The least rank of each graph_hash, over any number of partitions. Columns: graph_hash, rank."""
    frame = dd.from_pandas(keys, npartitions=max(1, partitions))
    return frame.groupby("graph_hash")["rank"].min(split_out=1 + len(keys) // 1_000_000).compute().sort_index()


def merge(
    warehouse: Warehouse, parent: Snapshot | None, captures: Iterable[str], models: list[dict[str, Any]]
) -> Merged:
    """Publish the staged `captures` and the rows of `models` on top of `parent`.

    Runs on the Dask client that is current, else in this process. When a staged file is not whole nothing is
    published: its capture is reported in `damaged`, its file deleted.
    """
    wanted = sorted(set(captures))
    url = warehouse.storage.url
    headers = _headers(url, wanted)
    damaged = tuple(c for c in wanted if headers[c] is None)
    if damaged:
        staging.remove(warehouse.storage, damaged)
        return Merged(None, 0, 0, 0, damaged)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in staging.HEADER_TABLES}
    for capture in wanted:
        for name, found in (headers[capture] or {}).items():
            rows[name].extend(found)
    known = _known_graphs(warehouse, parent)
    winners = _winners(rows, known)
    new: dict[str, Any] = {name: staging.table(name, rows[name]) for name in rows if name != "graphs"}
    kept = [row for row in rows["graphs"] if winners.get(row["graph_hash"]) == (row["capture_id"], row["graph_index"])]
    new["graphs"] = staging.table("graphs", kept)
    new["nodes"] = _node_pieces(warehouse, kept)
    new["models"] = _new_models(warehouse, parent, models)
    new = {name: part for name, part in new.items() if not (isinstance(part, pa.Table) and part.num_rows == 0)}
    if not kept:
        del new["nodes"]
    try:
        snapshot = warehouse.publish(parent, new)
    except staging.StagingError as error:  # whole by its footer, damaged inside: found when its nodes were read
        staging.remove(warehouse.storage, [error.capture_id])
        return Merged(None, 0, 0, 0, (error.capture_id,))
    staging.remove(warehouse.storage, wanted)
    unique = len({row["graph_hash"] for row in rows["graphs"]})
    return Merged(snapshot, len(rows["occurrences"]), unique, len(kept), ())


def _headers(url: str, captures: list[str]) -> dict[str, staging.Rows | None]:
    chunks = [captures[i : i + CHUNK] for i in range(0, len(captures), CHUNK)]
    read = [dask.delayed(_read_headers)(url, chunk) for chunk in chunks]
    scheduler = {} if len(chunks) > 1 else {"scheduler": "synchronous"}
    return {capture: header for part in dask.compute(*read, **scheduler) for capture, header in part}


def _read_headers(url: str, captures: list[str]) -> list[tuple[str, staging.Rows | None]]:
    return list(staging.headers(open_storage(url), captures))


def _known_graphs(warehouse: Warehouse, parent: Snapshot | None) -> set[str]:
    if parent is None:
        return set()
    return set(warehouse.read(parent, "graphs", ["graph_hash"])["graph_hash"].to_pylist())


def _winners(rows: dict[str, list[dict[str, Any]]], known: set[str]) -> dict[str, tuple[str, int]]:
    """graph_hash -> (capture_id, graph_index) of the row to keep, for graphs that the snapshot does not hold."""
    first = {row["capture_id"]: priority(row) for row in rows["captures"]}
    new = [row for row in rows["graphs"] if row["graph_hash"] not in known]
    if not new:
        return {}
    keys = pd.DataFrame(
        {
            "graph_hash": [row["graph_hash"] for row in new],
            "rank": [rank(first[row["capture_id"]], row["capture_id"], row["graph_index"]) for row in new],
        }
    ).astype("string[pyarrow]")
    found = least(keys, 1 + len(new) // 50_000)
    return {h: (text.split("|")[1], int(text.split("|")[2])) for h, text in found.items()}


def _node_pieces(warehouse: Warehouse, kept: list[dict[str, Any]]) -> Iterator[pa.Table]:
    """Node rows of the kept graphs, in pieces cut in graph_hash order: the same cuts whoever made the captures."""
    piece: list[dict[str, Any]] = []
    waiting = 0
    for row in sorted(kept, key=lambda r: str(r["graph_hash"])):
        piece.append(row)
        waiting += row["node_count"]
        if waiting >= PIECE_ROWS:
            yield _nodes(warehouse, piece)
            piece, waiting = [], 0
    if piece:
        yield _nodes(warehouse, piece)


def _nodes(warehouse: Warehouse, piece: list[dict[str, Any]]) -> pa.Table:
    of_capture: dict[str, list[str]] = {}
    for row in piece:
        of_capture.setdefault(row["capture_id"], []).append(row["graph_hash"])
    parts = [staging.nodes(warehouse.storage, capture, hashes) for capture, hashes in sorted(of_capture.items())]
    return pa.concat_tables(parts)


def _new_models(warehouse: Warehouse, parent: Snapshot | None, models: list[dict[str, Any]]) -> pa.Table:
    key = TABLES["models"].sort
    known: set[tuple[str, ...]] = set()
    if parent is not None:
        held = warehouse.read(parent, "models", list(key))
        known = set(zip(*(held[name].to_pylist() for name in key), strict=True))
    new = {tuple(row[name] for name in key): row for row in models}
    return staging.table("models", [row for k, row in new.items() if k not in known])
