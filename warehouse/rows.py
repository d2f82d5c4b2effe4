"""GraphRecords as rows of the `nodes` table, and back: an exact inverse, nested graphs included.

In go (graph_hash, GraphRecord) pairs, out comes an Arrow table with `warehouse.schema.NODES`, and the other way round.
Rows of nested graphs carry their `scope` (`body_0`, `body_0.body_1`, ...), which is how the tree is found again.
Reading trusts nothing: a row that the writer could not have written raises RecordError("record_invalid").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import pyarrow as pa

from warehouse.graph.record import OPS, ROLES, VALUES, GraphRecord, Node, RecordError
from warehouse.schema import NODES

_COLUMNS = tuple(name for name, _, _ in NODES.columns)
_FIELDS = tuple(field.name for field in fields(Node))
_KEYS = ("graph_hash", "scope", "idx")
_REQUIRED = ("op", "target", "args", "kwargs", "value")
_BODY = re.compile(r"body_(0|[1-9]\d{0,5})")

if set(_COLUMNS) != {*_KEYS, *_FIELDS}:
    raise ImportError("warehouse.schema.NODES and warehouse.graph.record.Node name different columns")


def record_rows(graph_hash: str, record: GraphRecord) -> list[dict[str, Any]]:
    """The rows of one record, each a dict with every column of `nodes`; sizes and strides are lists.

    Raises RecordError("graph_not_serialisable") for a graph without nodes, which no row could stand for.
    """
    return [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(graph_hash, record)]


def graph_columns(record: GraphRecord) -> dict[str, Any]:
    """The columns of `graphs` that the record itself tells: counts, dtypes, operators, device. Nested graphs count."""
    nodes = [node for _, graph in record.walk() for node in graph.nodes]
    roles = [node.role for node in record.nodes if node.op == "placeholder"]
    calls = [node for node in nodes if node.op in ("call_function", "call_method")]
    # cuda before cpu: a graph traced for cuda may hold scalars on the CPU, never the other way round.
    devices = {node.device for node in nodes if node.device is not None}
    return {
        "node_count": len(nodes),
        "op_count": len(calls),
        "input_count": roles.count("input"),
        "parameter_count": roles.count("parameter") + roles.count("buffer"),
        "symbolic": any(node.expr is not None for node in nodes),
        "effect_count": sum(node.effect is not None for node in nodes),
        "dtypes": sorted({node.dtype for node in nodes if node.dtype is not None}),
        "device": max(devices, default=""),
        "ops": sorted({node.target for node in calls}),
    }


def node_table(pairs: Iterable[tuple[str, GraphRecord]]) -> pa.Table:
    """An Arrow table of all records' nodes, in the order given (publishing sorts). Errors as `record_rows`."""
    columns: list[list[Any]] = [[] for _ in _COLUMNS]
    for graph_hash, record in pairs:
        for row in _rows(graph_hash, record):
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return pa.Table.from_arrays(
        [pa.array(column, type) for column, (_, type, _) in zip(columns, NODES.columns, strict=True)],
        schema=NODES.schema,
    )


def records_from_table(table: pa.Table) -> dict[str, GraphRecord]:
    """Every record in a table of `nodes` rows, by graph_hash. Rows may come in any order.

    Raises RecordError("record_invalid") for a missing column, a null or unknown op, value or role, a gap or repeat in
    a scope's row numbers, a scope that is no nested graph's, or a nested graph without its parent.
    """
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing:
        raise RecordError("record_invalid", f"the nodes table lacks the column {missing[0]!r}")
    try:
        columns = {name: table.column(name).cast(NODES.schema.field(name).type).to_pylist() for name in _COLUMNS}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RecordError("record_invalid", f"a column of the nodes table has the wrong type: {error}") from error

    scopes: dict[str, dict[tuple[int, ...], dict[int, Node]]] = {}
    paths: dict[str, tuple[int, ...]] = {"": ()}
    for i, (graph_hash, scope, idx) in enumerate(zip(*(columns[key] for key in _KEYS), strict=True)):
        where = f"graph {graph_hash}, scope {scope!r}, row {idx}"
        if graph_hash is None or scope is None or idx is None:
            raise RecordError("record_invalid", f"{where}: a key column is null")
        if scope not in paths:
            paths[scope] = _path(scope, where)
        rows = scopes.setdefault(graph_hash, {}).setdefault(paths[scope], {})
        if idx in rows:
            raise RecordError("record_invalid", f"{where}: the row number occurs twice")
        rows[idx] = _node({name: columns[name][i] for name in _FIELDS}, where)
    return {graph_hash: _assemble(graph_hash, parts) for graph_hash, parts in scopes.items()}


def _rows(graph_hash: str, record: GraphRecord) -> Iterator[tuple[Any, ...]]:
    for scope, graph in record.walk():
        if not graph.nodes:
            raise RecordError("graph_not_serialisable", f"graph {graph_hash}, scope {scope!r} has no nodes")
        for idx, node in enumerate(graph.nodes):
            known = {"graph_hash": graph_hash, "scope": scope, "idx": idx}
            yield tuple(known[name] if name in known else getattr(node, name) for name in _COLUMNS)


def _path(scope: str, where: str) -> tuple[int, ...]:
    """`body_0.body_12` -> (0, 12)."""
    matches = [_BODY.fullmatch(part) for part in scope.split(".")] if scope else []
    if len(matches) > 64 or any(match is None for match in matches):
        raise RecordError("record_invalid", f"{where}: not the scope of a nested graph")
    return tuple(int(match.group(1)) for match in matches if match)


def _node(row: dict[str, Any], where: str) -> Node:
    for name in _REQUIRED:
        if row[name] is None:
            raise RecordError("record_invalid", f"{where}: {name} is null")
    for name, known in (("op", OPS), ("value", VALUES)):
        if row[name] not in known:
            raise RecordError("record_invalid", f"{where}: unknown {name} {row[name]!r}")
    if row["role"] is not None and row["role"] not in ROLES:
        raise RecordError("record_invalid", f"{where}: unknown role {row['role']!r}")
    for name in ("shape", "stride"):
        if row[name] is not None:
            if None in row[name]:
                raise RecordError("record_invalid", f"{where}: {name} holds a null")
            row[name] = tuple(row[name])
    return Node(**row)


def _assemble(graph_hash: str, parts: dict[tuple[int, ...], dict[int, Node]]) -> GraphRecord:
    """The tree of graphs from {path: {idx: node}}, built from the deepest scope up."""
    children: dict[tuple[int, ...], dict[int, GraphRecord]] = {}
    for path in sorted(parts, key=lambda p: (-len(p), p)):
        rows, bodies = parts[path], children.pop(path, {})
        scope = ".".join(f"body_{i}" for i in path)
        for what, numbers in (("row", rows), ("nested graph", bodies)):
            absent = next((i for i in range(len(numbers)) if i not in numbers), None)
            if absent is not None:
                raise RecordError("record_invalid", f"graph {graph_hash}, scope {scope!r}: {what} {absent} is missing")
        graph = GraphRecord(tuple(rows[i] for i in range(len(rows))), tuple(bodies[i] for i in range(len(bodies))))
        if not path:
            if children:
                break
            return graph
        children.setdefault(path[:-1], {})[path[-1]] = graph
    orphan = ".".join(f"body_{i}" for i in min(children)) if children else ""
    raise RecordError("record_invalid", f"graph {graph_hash}: the graph around scope {orphan!r} is missing")
