"""How long the ready questions take on 5,000 graphs: `python benchmarks/queries.py [--warehouse lake]`.

In go the graphs of a warehouse (or hand-made blocks where there is none), out comes a table of medians of five. The
5,000 graphs are copies under new hashes, about 700 nodes each: records of fewer nodes are left out where there are
larger ones. Every copy has a hash, model and capture of its own; four share a template.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import xxhash

sys.path.insert(0, str(Path(__file__).parents[1]))

from curate import ready
from warehouse import schema
from warehouse.graph.record import GraphRecord, Node
from warehouse.rows import graph_columns, node_table, records_from_table
from warehouse.snapshot import Warehouse
from warehouse.sql import connect

BAR_SECONDS = 0.5
FEWEST_NODES, MOST_NODES, MEAN_NODES = 350, 2500, 700
REASONS = ("Data-dependent branching", "Unsupported builtin", "Tensor.item() call", "Unsupported context manager")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouse", default=None, help="take graphs from here (default: hand-made blocks)")
    parser.add_argument("--graphs", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args()
    records = _real(options.warehouse) if options.warehouse else [_blocks(n) for n in (20, 60, 80, 120)]
    with tempfile.TemporaryDirectory() as root:
        build(Path(root), records, options.graphs)
        with connect(root) as connection:
            nodes = connection.execute("SELECT count(*) FROM nodes").fetchone()
            seconds = {name: _median(connection, name, options.repeat) for name in ready.names()}
    result = {
        "graphs": options.graphs,
        "nodes": nodes[0] if nodes else 0,
        "records": len(records),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "slowest": round(max(seconds.values()), 3),
        "bar": BAR_SECONDS,
        "duckdb": duckdb.__version__,
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"{result['graphs']:,} graphs, {result['nodes']:,} nodes, copies of {len(records)}; {result['cores']} cores"
        )
        for name, value in sorted(seconds.items(), key=lambda item: -item[1]):
            print(f"{value:8.3f} s  {name}")
    return 0 if max(seconds.values()) <= BAR_SECONDS else 1


def build(root: Path, records: list[GraphRecord], graphs: int) -> None:
    """A warehouse at `root` with `graphs` copies of the records, in turn."""
    tables = [node_table([("", record)]) for record in records]
    columns = [graph_columns(record) for record in records]
    kinds = len(records)

    def nodes() -> Iterator[pa.Table]:
        # Sorted by hash a thousand at a time: a refresh writes pieces of such a size.
        order = sorted(range(graphs), key=lambda i: _hash("graph", i))
        for start in range(0, graphs, 1000):
            parts = [_relabelled(tables[i % kinds], _hash("graph", i)) for i in order[start : start + 1000]]
            yield pa.concat_tables(parts)

    rows: dict[str, list[dict[str, object]]] = {
        name: [] for name in ("graphs", "occurrences", "captures", "models", "failures")
    }
    for i in range(graphs):
        source, name, config = ("timm", "transformers")[i % 2], f"model{i}", _hash("config", i)
        rows["graphs"].append(
            {
                "graph_hash": _hash("graph", i), "structure_hash": _hash("structure", i // 2),
                "template_hash": _hash("template", i // (4 * kinds) * kinds + i % kinds),
                "op_hash": _hash("op", i % kinds), "capture_id": _hash("capture", i), "graph_index": 0,
                "hash_version": 1, **columns[i % kinds],
            }
        )  # fmt: skip
        for k in range(1 + i % 3):
            other = (i + k) % graphs
            rows["occurrences"].append(
                {
                    "graph_hash": _hash("graph", i), "capture_id": _hash("capture", other), "graph_index": k,
                    "config_hash": _hash("config", other),
                }
            )  # fmt: skip
        reasons = [f"{REASONS[(i + k) % 4]}\nuser code" for k in range(i % 4)]
        common = {
            "capture_id": _hash("capture", i),
            "config_hash": config,
            "source": source,
            "name": name,
            "variant": "v",
        }
        rows["captures"].append(
            {**common, "status": "complete", "graph_count": 1, "break_reasons": reasons, "break_count": len(reasons)}
        )
        rows["models"].append(
            {"source": source, "name": name, "config_hash": config, "family": f"family{i % 200}", "revision": "1"}
        )
        if i % 20 == 0:
            rows["failures"].append({**common, "class": ("timeout", "trace_error")[i % 40 // 20], "message": "m"})
    made = {name: pa.Table.from_pylist(held, schema.TABLES[name].schema) for name, held in rows.items()}
    Warehouse.open(root, create=True).publish(None, {**made, "nodes": nodes()})


def _median(connection: duckdb.DuckDBPyConnection, name: str, repeat: int) -> float:
    query = ready.load(name)
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        query.run(connection).fetchall()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _real(url: str) -> list[GraphRecord]:
    """Records of a warehouse, chosen so that their mean is near 700 nodes."""
    warehouse = Warehouse.open(url)
    every = records_from_table(warehouse.read(warehouse.snapshot(), "nodes"))
    fit = [every[key] for key in sorted(every) if FEWEST_NODES <= every[key].num_nodes() <= MOST_NODES]
    if not fit:
        return list(every.values())
    total = 0
    chosen: list[GraphRecord] = []
    for record in fit:
        # Take what moves the mean towards the aim.
        mean = total / len(chosen) if chosen else MEAN_NODES
        if not chosen or (record.num_nodes() - MEAN_NODES) * (mean - MEAN_NODES) <= 0 or len(chosen) < 3:
            chosen.append(record)
            total += record.num_nodes()
    return chosen


def _blocks(count: int) -> GraphRecord:
    """A hand-made transformer of `count` blocks of nine nodes, for machines without a warehouse."""
    function = "torch.nn.functional."

    def call(target: str, args: str, effect: int | None = None) -> Node:
        return Node("call_function", target, args, dtype="float32", shape=(1, 197, 192), device="cuda", effect=effect)

    nodes = [Node("placeholder", dtype="float32", shape=(1, 197, 192), name="x", role="input", slot=0, device="cuda")]
    for i in range(count):
        weights = [
            Node(
                "placeholder",
                dtype="float32",
                shape=(192, 192),
                name=f"blocks.{i}.{n}.weight",
                role="parameter",
                slot=k,
            )
            for k, n in enumerate(("norm", "fc1"), 2 * i + 1)
        ]
        nodes += [
            weights[0],
            call(function + "layer_norm", '["%2",{"tuple":[192]},"%1",null,1e-06]'),
            weights[1],
            call(function + "linear", '["%2","%1",null]'),
            call(function + "gelu", '["%1"]'),
            call("operator.mul", '["%1",0.5]'),
            call("torch.matmul", '["%1","%2"]'),
            call(function + "dropout", '["%1",0.1,true,false]', effect=i),
            call("operator.add", '["%1","%9"]'),
        ]
    return GraphRecord((*nodes, Node("output", value="none", args='["%1"]')))


def _relabelled(table: pa.Table, graph_hash: str) -> pa.Table:
    return table.set_column(0, table.schema.field(0), pa.array([graph_hash] * table.num_rows))


def _hash(kind: str, number: int) -> str:
    return xxhash.xxh3_128_hexdigest(f"{kind} {number}".encode())


if __name__ == "__main__":
    raise SystemExit(main())
