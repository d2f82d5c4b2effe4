"""What a profile run should do first: subgraphs without a profile on a device, structures first, sizes second.

In go a snapshot and a device's name, out come hashes in order and, for a chosen few, their node rows. A snapshot
without subgraphs offers its small graphs instead: a graph is the largest of its own subgraphs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.profile.classes import RETRIED
from warehouse.checks import readable
from warehouse.schema import NODES, TABLES
from warehouse.snapshot import Snapshot, Warehouse

#: Operators of the largest graph that is profiled whole.
MAX_GRAPH_OPS = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subgraph that may be profiled. `occurrences`: places where it occurs in the dataset."""

    subgraph_hash: str
    structure_hash: str
    occurrences: int


@dataclass(frozen=True, slots=True)
class Unprofiled:
    """order: hashes, the most wanted first. held: candidates that have a profile. nodes: the table of their rows."""

    order: tuple[str, ...]
    held: int
    nodes: str


def unprofiled(warehouse: Warehouse, snapshot: Snapshot, device: str, mode: str) -> Unprofiled:
    """Candidates of `snapshot` without a profile on `device` in `mode`. Raises WarehouseError for damaged files."""
    nodes, candidates = _candidates(warehouse, snapshot)
    held = profiled(warehouse, snapshot, device, mode)
    waiting = [c for c in candidates if c.subgraph_hash not in held]
    return Unprofiled(tuple(ranked(waiting, candidates)), len(candidates) - len(waiting), nodes)


def profiled(warehouse: Warehouse, snapshot: Snapshot, device: str, mode: str) -> set[str]:
    """Subgraphs whose profile on `device` needs no second try."""
    if "profiles" not in snapshot.tables:
        return set()
    rows = warehouse.read(snapshot, "profiles", ["subgraph_hash", "device", "mode", "class"]).to_pylist()
    return {
        r["subgraph_hash"] for r in rows if r["device"] == device and r["mode"] == mode and r["class"] not in RETRIED
    }


def ranked(waiting: list[Candidate], every: list[Candidate]) -> list[str]:
    """One of each structure, the most frequent structures first; then a second one of each, and so on.

    Inside a structure the most frequent comes first. `every` holds those that were profiled before too, so that a
    structure that has a profile waits behind one that has none.
    """
    weight = Counter[str]()
    for candidate in every:
        weight[candidate.structure_hash] += candidate.occurrences
    done = Counter(c.structure_hash for c in every) - Counter(c.structure_hash for c in waiting)
    turn: Counter[str] = Counter(done)
    keyed = []
    for candidate in sorted(waiting, key=lambda c: (-c.occurrences, c.subgraph_hash)):
        structure = candidate.structure_hash
        keyed.append((turn[structure], -weight[structure], structure, candidate.subgraph_hash))
        turn[structure] += 1
    return [key[-1] for key in sorted(keyed)]


def node_rows(warehouse: Warehouse, snapshot: Snapshot, nodes: str, hashes: tuple[str, ...]) -> pa.Table:
    """The node rows of `hashes` with a column `priority`, their places in that order; file after file."""
    order = pa.array(hashes, pa.string())
    parts = [NODES.schema.empty_table()]
    for file in snapshot.tables[nodes].files:
        with readable(warehouse.storage, file.path) as stream:
            rows = pq.read_table(stream, filters=pc.field("graph_hash").isin(order))
        parts.append(rows.select(NODES.schema.names).cast(NODES.schema))
    table = pa.concat_tables(parts)
    places = pc.index_in(table.column("graph_hash"), value_set=order).cast(pa.int64())
    return table.append_column("priority", places)


def _candidates(warehouse: Warehouse, snapshot: Snapshot) -> tuple[str, list[Candidate]]:
    if "subgraphs" in TABLES and "subgraphs" in snapshot.tables and snapshot.rows("subgraphs"):
        rows = warehouse.read(snapshot, "subgraphs", ["subgraph_hash", "structure_hash"])
        occurrences = warehouse.read(snapshot, "subgraph_occurrences", ["subgraph_hash"]).column("subgraph_hash")
        counts = Counter(occurrences.to_pylist())
        pairs = zip(rows.column("subgraph_hash").to_pylist(), rows.column("structure_hash").to_pylist(), strict=True)
        return "subgraph_nodes", [Candidate(h, s or h, max(1, counts[h])) for h, s in dict(pairs).items()]
    graphs = warehouse.read(snapshot, "graphs", ["graph_hash", "structure_hash", "op_count"]).to_pylist()
    counts = Counter(warehouse.read(snapshot, "occurrences", ["graph_hash"]).column("graph_hash").to_pylist())
    small = [g for g in graphs if 0 < g["op_count"] <= MAX_GRAPH_OPS]
    return "nodes", [Candidate(g["graph_hash"], g["structure_hash"], counts[g["graph_hash"]]) for g in small]
