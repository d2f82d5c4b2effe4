"""Subgraphs of one graph as rows of the warehouse: each distinct one checked and described, every occurrence kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dedup.hashes import HASH_VERSION, hashes
from extract.subgraphs.carve import Subgraph
from extract.subgraphs.fusible import computes
from warehouse.graph.literals import loads
from warehouse.graph.record import GraphRecord, RecordError
from warehouse.graph.to_fx import to_graph_module
from warehouse.rows import graph_columns, node_table, records_from_table


def described(record: GraphRecord) -> dict[str, Any]:
    """The columns of `subgraphs` that the record itself tells."""
    found = hashes(record)
    known = graph_columns(record)
    tensors = [n for n in record.nodes if n.op == "placeholder" and n.value == "tensor"]
    return {
        "subgraph_hash": found.graph_hash,
        "structure_hash": found.structure_hash,
        "template_hash": found.template_hash,
        "op_hash": found.op_hash,
        "compute_count": sum(computes(n) for n in record.nodes),
        "input_count": len(tensors),
        "output_count": _outputs(record),
        "hash_version": HASH_VERSION,
        **{name: known[name] for name in ("node_count", "op_count", "dtypes", "ops")},
    }


def _outputs(record: GraphRecord) -> int:
    (given,) = loads(record.nodes[-1].args)
    if isinstance(given, dict):
        (given,) = given.values()
    return len(given) if isinstance(given, list) else 1


class Described:
    """Rows of `subgraphs` and `subgraph_occurrences`, and the records, of subgraphs of one graph."""

    def __init__(self, graph_hash: str):
        self.graph_hash = graph_hash
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.records: dict[str, GraphRecord] = {}
        self.occurrences: list[dict[str, Any]] = []
        self.members: dict[tuple[str, str], list[Subgraph]] = {}

    def add(self, subgraphs: Iterable[Subgraph]) -> None:
        """Take subgraphs of the graph, in the order in which the first of equal ones stands for all."""
        for subgraph in subgraphs:
            row = described(subgraph.record)
            key = (row["subgraph_hash"], subgraph.kind)
            self.records.setdefault(row["subgraph_hash"], subgraph.record)
            cut = {"kind": subgraph.kind, "variant": "given", "of": None, "graph_hash": self.graph_hash}
            self.rows.setdefault(key, {**row, **cut, "verified": "nodes"})
            self.members.setdefault(key, []).append(subgraph)
            place = {"graph_hash": self.graph_hash, "first_row": subgraph.rows[0], "rows": list(subgraph.rows)}
            self.occurrences.append({"subgraph_hash": key[0], "kind": key[1], **place})

    def check(self) -> None:
        """RecordError unless stored rows give every record back, and every record builds."""
        if records_from_table(node_table(sorted(self.records.items()))) != self.records:
            raise RecordError("round_trip_mismatch", "the stored rows of a subgraph give another record")
        for record in self.records.values():
            to_graph_module(record, callable_=False)
