"""Bytes a stored node takes: `python benchmarks/stored_size.py [--warehouse lake]`.

Two figures over one snapshot. Overall: bytes of all files of `nodes` and `graphs`, divided by the nodes. Per graph, of
which the median is taken: the compressed bytes of the graph's nodes written alone with the warehouse's own settings,
plus an equal share of the stored `graphs` table. A graph written alone shares nothing with others, so this is more than
it costs in a warehouse; the Parquet footer, which a file has once for all its graphs, is not counted in it.
"""

from __future__ import annotations

import argparse
import io
import json
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
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    options = parser.parse_args()
    warehouse = Warehouse.open(options.warehouse)
    snapshot = warehouse.snapshot()
    nodes, graphs = warehouse.read(snapshot, "nodes"), warehouse.read(snapshot, "graphs")
    stored = sum(file.bytes or 0 for name in ("nodes", "graphs") for file in snapshot.tables[name].files)
    row_bytes = sum(file.bytes or 0 for file in snapshot.tables["graphs"].files) / max(graphs.num_rows, 1)
    per_graph = []
    for graph_hash in graphs.column("graph_hash").to_pylist():
        own = nodes.filter(pc.equal(nodes.column("graph_hash"), graph_hash))
        per_graph.append((_compressed(own) + row_bytes) / own.num_rows)
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
        "median_bytes_per_node": round(statistics.median(per_graph), 2),
        "p90_bytes_per_node": round(sorted(per_graph)[int(0.9 * len(per_graph))], 2),
        "bar": BAR_BYTES,
        "bytes_per_node_by_column": {
            name: round(size / nodes.num_rows, 3) for name, size in sorted(columns.items(), key=lambda item: -item[1])
        },
    }
    print(json.dumps(result) if options.json else "\n".join(f"{key}: {value}" for key, value in result.items()))
    return 0 if statistics.median(per_graph) <= BAR_BYTES else 1


def _compressed(rows: pa.Table) -> int:
    """Bytes of the column chunks of rows written alone."""
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
