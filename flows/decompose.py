"""`passnet decompose`: every graph of the newest snapshot cut into subgraphs, as a new snapshot.

Two rounds of cuts: candidates and single operators of each graph that was not decomposed yet; then, over all graphs of
the snapshot, the operator sequences that repeat. Finished cuts are durable one by one, so whatever is killed, the same
command goes on; with nothing new, nothing is started.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from extract.subgraphs.typical import mined
from flows.errors import UserError
from flows.refresh import alone
from warehouse import cutting
from warehouse.snapshot import Snapshot, Warehouse

Progress = Callable[[dict[str, Any]], None]
#: Called with how many cuts a round has to make and its name; gives the function that is told of each.
Started = Callable[[int, str], Progress]


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a decomposition is told. `workers` 0 means one for each core."""

    warehouse: str = "lake"
    workers: int = 0
    deadline: float = 300.0
    scheduler: str | None = None

    @property
    def worker_count(self) -> int:
        return self.workers or len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Decomposed:
    """What a run did. graphs: decomposed now. held: decomposed before. Counts of subgraphs are the snapshot's."""

    snapshot: Snapshot
    graphs: int
    held: int
    subgraphs: dict[str, int]
    structures: dict[str, int]
    occurrences: int
    failed: dict[str, int]
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The object that `decompose --json` prints."""
        return {
            "graphs": self.graphs,
            "held": self.held,
            "subgraphs": self.subgraphs,
            "structures": self.structures,
            "occurrences": self.occurrences,
            "failed": self.failed,
            "seconds": round(self.seconds, 2),
            "snapshot": self.snapshot.id,
        }


def decompose(request: Request, started: Started) -> Decomposed:
    """Do what `request` says. Raises UserError or WarehouseError, SchedulerLost when the cluster goes away."""
    clock = time.perf_counter()
    if request.scheduler is not None and not request.scheduler.strip():
        raise UserError("the scheduler's address is empty: give tcp://host:port, or leave --scheduler out")
    warehouse = Warehouse.open(request.warehouse)
    with alone(warehouse):
        parent = warehouse.snapshot()
        if not parent.rows("graphs"):
            raise UserError(
                f"snapshot {parent.sequence} of {warehouse.storage.url} holds no graphs: refresh models first"
            )
        waiting, held = undecomposed(warehouse, parent)
        snapshot = parent
        if waiting:
            from flows.decompose_tasks import run  # Prefect and Dask: imported only when there is work

            snapshot = run(request, warehouse, parent, waiting, started)
        return _outcome(warehouse, snapshot, len(waiting), held, time.perf_counter() - clock)


def undecomposed(warehouse: Warehouse, snapshot: Snapshot) -> tuple[list[str], int]:
    """(graphs of the snapshot that today's rules have not decomposed, how many they have)."""
    from extract.subgraphs.job import CUT_VERSION

    graphs = warehouse.read(snapshot, "graphs", ["graph_hash"])["graph_hash"].to_pylist()
    rows = warehouse.read(snapshot, "decompositions", ["graph_hash", "cut_version"]).to_pylist()
    done = {row["graph_hash"] for row in rows if row["cut_version"] == CUT_VERSION}
    waiting = sorted(set(graphs) - done)
    return waiting, len(graphs) - len(waiting)


def jobs(
    warehouse: Warehouse, snapshot: Snapshot, spans: dict[str, list[list[int]] | None]
) -> dict[str, dict[str, Any]]:
    """cut id -> job payload, for each graph and what is to be cut out of it (None: candidates and single operators)."""
    from extract.subgraphs.job import identity

    files = _files(warehouse, snapshot, set(spans))
    made = {}
    for graph_hash, wanted in spans.items():
        payload = {"graph_hash": graph_hash, "spans": wanted, "files": files[graph_hash]}
        made[identity(graph_hash, wanted)] = {**payload, "warehouse": warehouse.storage.url}
    return made


def _files(warehouse: Warehouse, snapshot: Snapshot, wanted: set[str]) -> dict[str, list[str]]:
    """graph -> the files of `nodes` that hold it."""
    import pyarrow.parquet as pq

    from warehouse.checks import readable

    found: dict[str, list[str]] = {graph: [] for graph in wanted}
    for file in snapshot.tables["nodes"].files:
        with readable(warehouse.storage, file.path) as stream:
            hashes = pc.unique(pq.read_table(stream, columns=["graph_hash"])["graph_hash"]).to_pylist()
        for graph in hashes:
            if graph in found:
                found[graph].append(file.path)
    return found


def sequences(warehouse: Warehouse, snapshot: Snapshot, new: pa.Table) -> dict[str, list[list[int]]]:
    """graph -> rows of each typical sequence in it, mined over the snapshot's graphs and the `new` decompositions."""
    graphs = warehouse.read(snapshot, "graphs", ["graph_hash", "template_hash"]).to_pylist()
    template = {row["graph_hash"]: row["template_hash"] for row in graphs}
    fresh = set(new["graph_hash"].to_pylist())
    rows = [r for r in warehouse.read(snapshot, "decompositions").to_pylist() if r["graph_hash"] not in fresh]
    rows = sorted(rows + new.to_pylist(), key=lambda r: r["graph_hash"])
    rows = [row for row in rows if row["graph_hash"] in template]
    spoken = [(row["words"], row["word_rows"]) for row in rows]
    found: dict[str, list[list[int]]] = {}
    for places in mined(spoken, templates=[template[row["graph_hash"]] for row in rows]).values():
        for k, span in places:
            found.setdefault(rows[k]["graph_hash"], []).append(span)
    return {graph: sorted(found[graph]) for graph in sorted(found)}


def publish(warehouse: Warehouse, parent: Snapshot, cuts: list[str]) -> Snapshot:
    """A snapshot with what `cuts` found; typical subgraphs, which depend on all graphs, take the place of earlier ones.

    Of equal subgraphs the row of the least graph is kept, so the result does not depend on who finished first. A
    subgraph that the parent holds stays as it is.
    """
    parts: dict[str, list[pa.Table]] = {name: [] for name in (*cutting.HEADER_TABLES, "subgraph_nodes")}
    origins = []
    for name in sorted(cuts):
        tables, nodes = cutting.read(warehouse.storage, name)
        for table, rows in tables.items():
            parts[table].append(rows)
        cut_out_of = dict(
            zip(*(tables["subgraphs"][c].to_pylist() for c in ("subgraph_hash", "graph_hash")), strict=True)
        )
        parts["subgraph_nodes"].append(nodes)
        origins.append(pa.array([cut_out_of[h] for h in nodes["graph_hash"].to_pylist()], pa.string()))
    made = {name: pa.concat_tables(tables) for name, tables in parts.items() if tables}
    nodes = made.pop("subgraph_nodes").append_column("origin", pa.chunked_array(origins, pa.string()))
    held = {t: warehouse.read(parent, t) for t in ("subgraphs", "subgraph_occurrences", "decompositions")}
    stale = pc.equal(held["subgraphs"]["kind"], "typical") if held["subgraphs"].num_rows else pa.array([], pa.bool_())
    variants = pc.not_equal(held["subgraphs"]["variant"], "given")
    kept = held["subgraphs"].filter(pc.or_(pc.invert(stale), variants))
    subgraphs = _least(pa.concat_tables([made["subgraphs"]]), kept)
    places = held["subgraph_occurrences"]
    places = places.filter(pc.not_equal(places["kind"], "typical")) if places.num_rows else places
    again = set(made["decompositions"]["graph_hash"].to_pylist())
    done = held["decompositions"]
    done = done.filter(pc.invert(pc.is_in(done["graph_hash"], pa.array(sorted(again), pa.string()))))
    known = set(kept["subgraph_hash"].to_pylist())
    failures = warehouse.read(parent, "subgraph_failures")
    keys = set(zip(*(made["subgraph_failures"][c].to_pylist() for c in ("graph_hash", "kind")), strict=True))
    remain = [r for r in failures.to_pylist() if (r["graph_hash"], r["kind"]) not in keys and r["kind"] != "typical"]
    return warehouse.publish(
        parent,
        {
            "subgraphs": pa.concat_tables([kept, subgraphs]),
            "subgraph_nodes": _nodes(warehouse, parent, nodes, known, set(subgraphs["subgraph_hash"].to_pylist())),
            "subgraph_occurrences": pa.concat_tables([places, made["subgraph_occurrences"]]),
            "decompositions": pa.concat_tables([done, made["decompositions"]]),
            "subgraph_failures": pa.concat_tables(
                [pa.Table.from_pylist(remain, failures.schema), made["subgraph_failures"]]
            ),
        },
        replace={*cutting.HEADER_TABLES, "subgraph_nodes"},
    )


def _least(found: pa.Table, kept: pa.Table) -> pa.Table:
    """One row for each (subgraph, kind) that `kept` lacks: of the least graph."""
    held = set(zip(kept["subgraph_hash"].to_pylist(), kept["kind"].to_pylist(), strict=True))
    keys = list(zip(found["subgraph_hash"].to_pylist(), found["kind"].to_pylist(), strict=True))
    graphs = found["graph_hash"].to_pylist()
    least: dict[tuple[str, str], int] = {}
    for i, key in enumerate(keys):
        if key not in held and (key not in least or graphs[i] < graphs[least[key]]):
            least[key] = i
    return found.take(pa.array(sorted(least.values()), pa.int64()))


def _nodes(
    warehouse: Warehouse, parent: Snapshot, found: pa.Table, known: set[str], wanted: set[str]
) -> list[pa.Table]:
    """Node rows of `known` subgraphs as the parent has them, and of the other `wanted` ones from their least graph."""
    held = warehouse.read(parent, "subgraph_nodes")
    held = held.filter(pc.is_in(held["graph_hash"], pa.array(sorted(known), pa.string())))
    fresh = found.filter(pc.is_in(found["graph_hash"], pa.array(sorted(wanted - known), pa.string())))
    least = fresh.group_by("graph_hash").aggregate([("origin", "min")]).rename_columns(["graph_hash", "least"])
    origin = dict(zip(least["graph_hash"].to_pylist(), least["least"].to_pylist(), strict=True))
    hashes, origins = fresh["graph_hash"].to_pylist(), fresh["origin"].to_pylist()
    mask = pa.array([origin[h] == o for h, o in zip(hashes, origins, strict=True)], pa.bool_())
    return [pa.concat_tables([held, fresh.filter(mask).select(held.column_names)])]


def _outcome(warehouse: Warehouse, snapshot: Snapshot, graphs: int, held: int, seconds: float) -> Decomposed:
    rows = warehouse.read(snapshot, "subgraphs", ["kind", "structure_hash", "variant"]).to_pylist()
    given = [row for row in rows if row["variant"] == "given"]
    failures = warehouse.read(snapshot, "subgraph_failures", ["class"])["class"].to_pylist()
    structures = {(row["kind"], row["structure_hash"]) for row in given}
    return Decomposed(
        snapshot=snapshot,
        graphs=graphs,
        held=held,
        subgraphs=dict(sorted(Counter(row["kind"] for row in given).items())),
        structures=dict(sorted(Counter(kind for kind, _ in structures).items())),
        occurrences=snapshot.rows("subgraph_occurrences"),
        failed=dict(sorted(Counter(failures).items())),
        seconds=seconds,
    )
