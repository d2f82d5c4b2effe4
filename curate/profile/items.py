"""The work of a run: records of many subgraphs in one Parquet file, in the order in which they are wanted.

In goes a file with the columns of `subgraph_nodes` (those of `nodes`) and perhaps an integer column `priority`; out
come hashes in order, and one record at a time. Processes forked after reading share the table's memory.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.graph.record import GraphRecord, RecordError
from warehouse.rows import records_from_table
from warehouse.schema import NODES


class Items:
    """Records by hash. `order`: hashes, the most wanted first (least `priority`; else by first row in the file)."""

    def __init__(self, table: pa.Table):
        missing = [n for n, _, _ in NODES.columns if n not in table.column_names]
        if missing:
            raise RecordError("record_invalid", f"the items lack the column {missing[0]!r} of nodes")
        ranks = pa.array(range(table.num_rows), pa.int64())
        table = table.append_column("rank", ranks)
        first = table.column("priority") if "priority" in table.column_names else table.column("rank")
        table = table.append_column("first", first)
        groups = table.group_by("graph_hash").aggregate([("first", "min"), ("rank", "min")])
        groups = groups.sort_by([("first_min", "ascending"), ("rank_min", "ascending")])
        self.order: list[str] = [h for h in groups.column("graph_hash").to_pylist() if h]
        self._table = table.select([n for n, _, _ in NODES.columns]).sort_by("graph_hash").combine_chunks()
        self._places: dict[str, tuple[int, int]] = {}
        hashes = self._table.column("graph_hash")
        runs = pc.run_end_encode(hashes.combine_chunks()) if self._table.num_rows else None
        start = 0
        if runs is not None:
            for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
                self._places[value] = (start, end - start)
                start = end

    @classmethod
    def read(cls, path: Path) -> Items:
        """Raises OSError or pyarrow.ArrowException for a file that is none, RecordError for one without the columns."""
        return cls(pq.read_table(path))

    def record(self, subgraph_hash: str) -> GraphRecord:
        """Raises RecordError("record_invalid") for rows that no writer of ours could have written."""
        return records_from_table(self._table.slice(*self._places[subgraph_hash]))[subgraph_hash]
