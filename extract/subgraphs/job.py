"""The job of a cutting worker: one graph in, the durable file of its subgraphs out.

Two kinds of job: `cut` makes the fusible candidates and single operators of a graph, and the words that typical
sequences are mined from; `spans` cuts out the sequences that mining found (flows/decompose.py).
"""

from __future__ import annotations

import gc
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from extract.failures import classify
from extract.model import Failure
from extract.subgraphs import typical
from extract.subgraphs.carve import Parent
from extract.subgraphs.describe import Described
from extract.subgraphs.fusible import barriers, candidates, computes, singles
from extract.subgraphs.splice import runs_as_in_parent
from warehouse import cutting
from warehouse.checks import readable
from warehouse.graph.record import GraphRecord, RecordError
from warehouse.rows import node_table, records_from_table
from warehouse.schema import NODES
from warehouse.storage import WarehouseError, open_storage

#: Raised whenever other subgraphs come out of the same graph: graphs are then decomposed again.
CUT_VERSION = 1
#: One graph in this many is run, its subgraphs compared with it bit for bit.
SHARE = 24
#: Elements of all tensors of a graph up to which it is run.
LARGEST = 60_000_000


def identity(graph_hash: str, spans: list[list[int]] | None = None) -> str:
    """The name of a cut: of what it is made from, and by which rules."""
    return xxhash.xxh3_128_hexdigest(f"{CUT_VERSION} {graph_hash} {spans}".encode())


def run(given: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """Cut what `given` names: {"graph_hash", "files", "spans", "warehouse"}. Returns a summary, or {"refused": why}."""
    storage = open_storage(given["warehouse"])
    try:
        record = _record(given)
        summary = _cut(storage, given, record)
    except WarehouseError as error:
        return {"refused": str(error)}
    except Exception as error:
        summary = stage_failure(given, classify(error, "record"))
    gc.collect()
    return summary


def stage_failure(given: dict[str, Any], failure: Failure) -> dict[str, Any]:
    """The durable row of a graph that could not be cut."""
    kind = "fusible" if given["spans"] is None else "typical"
    row = {"graph_hash": given["graph_hash"], "kind": kind, "class": failure.kind}
    rows = {"subgraph_failures": [{**row, "exception": failure.exception, "message": failure.message,
                                   "place": failure.place}]}  # fmt: skip
    if given["spans"] is None:
        empty: dict[str, Any] = {"light_rows": [], "words": [], "word_rows": []}
        rows["decompositions"] = [{"graph_hash": given["graph_hash"], "cut_version": CUT_VERSION, **empty}]
    name = identity(given["graph_hash"], given["spans"])
    cutting.write(open_storage(given["warehouse"]), name, rows, NODES.schema.empty_table())
    return {"id": name, "class": failure.kind, "subgraphs": 0, "occurrences": 0}


def _record(given: dict[str, Any]) -> GraphRecord:
    """The graph. Raises RecordError for damaged rows, WarehouseError when no file holds it."""
    storage, wanted = open_storage(given["warehouse"]), given["graph_hash"]
    for path in given["files"]:
        with readable(storage, path) as stream:
            rows = pq.read_table(stream, columns=NODES.schema.names, filters=pc.field("graph_hash") == wanted)
        if rows.num_rows:
            return records_from_table(rows.cast(NODES.schema))[wanted]
    raise WarehouseError(f"no file of nodes holds graph {wanted}: the snapshot is damaged, restore its files")


def _cut(storage: Any, given: dict[str, Any], record: GraphRecord) -> dict[str, Any]:
    parent = Parent.of(record)
    found = Described(given["graph_hash"])
    rows: cutting.Rows = {}
    if given["spans"] is None:
        found.add(candidates(parent))
        found.add(singles(parent))
        words, word_rows = typical.sequence(parent)
        light = sorted({r for r, n in enumerate(parent.record.nodes) if computes(n)} - barriers(parent))
        row = {"graph_hash": given["graph_hash"], "cut_version": CUT_VERSION, "light_rows": light}
        rows["decompositions"] = [{**row, "words": list(words), "word_rows": word_rows}]
    else:
        made = (typical.carved(parent, span) for span in given["spans"])
        found.add(subgraph for subgraph in made if subgraph is not None)
    found.check()
    failures = _verify(record, found, given["graph_hash"])
    rows |= {"subgraphs": list(found.rows.values()), "subgraph_occurrences": found.occurrences}
    rows["subgraph_failures"] = failures
    name = identity(given["graph_hash"], given["spans"])
    cutting.write(storage, name, rows, node_table(sorted(found.records.items())))
    kind = failures[0]["class"] if failures else None
    return {"id": name, "class": kind, "subgraphs": len(found.rows), "occurrences": len(found.occurrences)}


def _verify(record: GraphRecord, found: Described, graph_hash: str) -> list[dict[str, Any]]:
    """Run the sampled share; subgraphs that give other bits than in their graph are taken out, and a row says so."""
    elements = sum(_elements(node) for node in record.nodes)
    if int(graph_hash[:8], 16) % SHARE or elements > LARGEST or not found.rows:
        return []
    keys = list(found.members)
    chosen = [found.members[key][0] for key in keys]
    try:
        differences = runs_as_in_parent(record, chosen)
    except Exception:
        return []  # the graph itself does not run here (a size, an operator of another device): nothing is proven
    wrong = {key: text for key, text in zip(keys, differences, strict=True) if text is not None}
    for key in keys:
        found.rows[key]["verified"] = "outputs"
    for key in wrong:
        del found.rows[key], found.members[key]
    found.occurrences = [o for o in found.occurrences if (o["subgraph_hash"], o["kind"]) in found.rows]
    kept = {subgraph_hash for subgraph_hash, _ in found.rows}
    found.records = {h: r for h, r in found.records.items() if h in kept}
    if not wrong:
        return []
    error = RecordError("subgraph_differs", f"{len(wrong)} subgraphs: {next(iter(wrong.values()))}")
    failure = classify(error, "record")
    fields = {"exception": failure.exception, "message": failure.message, "place": failure.place}
    return [{"graph_hash": graph_hash, "kind": next(iter(wrong))[1], "class": failure.kind, **fields}]


def _elements(node: Any) -> int:
    count = 1
    for size in node.shape or ():
        count *= max(size, 1)
    return count if node.value == "tensor" else 0
