"""Bytes a stored node takes: `python benchmarks/stored_size.py [--warehouse lake] [--graphs 200] [--seed 0]`.

Three figures over one snapshot. Overall: bytes of all files of `nodes` and `graphs`, divided by the nodes. Added (the
median over a random sample of graphs): what the compressed `nodes` of the snapshot lose when the graph is left out,
plus an equal share of the stored `graphs` table. Alone: the same graph written by itself, where it pays for the heads
of twenty columns that graphs otherwise share. Parquet footers are counted in the first figure only.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import statistics
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from warehouse import parquet
from warehouse.schema import NODES
from warehouse.snapshot import Warehouse

BAR_BYTES = 12.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouse", default="lake")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    options = parser.parse_args()
    warehouse = Warehouse.open(options.warehouse)
    snapshot = warehouse.snapshot()
    nodes, graphs = warehouse.read(snapshot, "nodes"), warehouse.read(snapshot, "graphs")
    stored = sum(file.bytes or 0 for name in ("nodes", "graphs") for file in snapshot.tables[name].files)
    row_bytes = sum(file.bytes or 0 for file in snapshot.tables["graphs"].files) / max(graphs.num_rows, 1)
    hashes = graphs.column("graph_hash").to_pylist()
    whole = _compressed(nodes)
    added, alone = [], []
    for graph_hash in random.Random(options.seed).sample(hashes, min(options.graphs, len(hashes))):
        mine = pc.equal(nodes.column("graph_hash"), graph_hash)
        own = nodes.filter(mine)
        added.append((whole - _compressed(nodes.filter(pc.invert(mine))) + row_bytes) / own.num_rows)
        alone.append((_compressed(own) + row_bytes) / own.num_rows)
    columns: dict[str, int] = {}
    for address in warehouse.addresses(snapshot, "nodes"):
        metadata = pq.read_metadata(address)
        for group in range(metadata.num_row_groups):
            for i in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(i)
                name = chunk.path_in_schema.split(".")[0]
                columns[name] = columns.get(name, 0) + chunk.total_compressed_size
    result = {
        "graphs": graphs.num_rows,
        "nodes": nodes.num_rows,
        "overall_bytes_per_node": round(stored / max(nodes.num_rows, 1), 2),
        "sampled_graphs": len(added),
        "median_added_bytes_per_node": round(statistics.median(added), 2),
        "p90_added_bytes_per_node": round(sorted(added)[int(0.9 * len(added))], 2),
        "median_alone_bytes_per_node": round(statistics.median(alone), 2),
        "bar": BAR_BYTES,
        "bytes_per_node_by_column": {
            name: round(size / nodes.num_rows, 3) for name, size in sorted(columns.items(), key=lambda item: -item[1])
        },
    }
    print(json.dumps(result) if options.json else "\n".join(f"{key}: {value}" for key, value in result.items()))
    return 0 if statistics.median(added) <= BAR_BYTES else 1


def _compressed(rows: pa.Table) -> int:
    """Bytes of the column chunks when these rows make up a file."""
    sink = io.BytesIO()
    parquet.write(parquet.conform(rows, NODES), NODES, sink)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    return sum(
        metadata.row_group(group).column(i).total_compressed_size
        for group in range(metadata.num_row_groups)
        for i in range(metadata.num_columns)
    )


if __name__ == "__main__":
    raise SystemExit(main())
