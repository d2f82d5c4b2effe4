"""Records survive as rows, exactly; rows that no record could have written are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse import tiny
from warehouse.graph.record import OPS, ROLES, VALUES, GraphRecord, Node, RecordError
from warehouse.rows import graph_columns, node_table, record_rows, records_from_table
from warehouse.schema import NODES

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
maybe = st.none() | texts
sizes = st.none() | st.lists(st.integers(-1, 2**62), max_size=4).map(tuple)
nodes = st.builds(
    Node, op=st.sampled_from(OPS), target=texts, args=texts, kwargs=texts, value=st.sampled_from(VALUES), dtype=maybe,
    shape=sizes, expr=maybe, stride=sizes, device=maybe, elements=maybe, effect=st.none() | st.integers(0, 2**31 - 1),
    name=maybe, role=st.none() | st.sampled_from(ROLES), slot=st.none() | st.integers(0, 2**31 - 1), recipe=maybe,
)  # fmt: skip
flat = st.builds(GraphRecord, st.lists(nodes, min_size=1, max_size=4).map(tuple))
records = st.recursive(
    flat,
    lambda inner: st.builds(
        GraphRecord, st.lists(nodes, min_size=1, max_size=3).map(tuple), st.lists(inner, max_size=11).map(tuple)
    ),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(texts, records, max_size=3), st.randoms())
def test_records_come_back_exactly_whatever_the_order_of_rows(held: dict[str, GraphRecord], random: Any) -> None:
    table = node_table(held.items())
    assert table.schema.equals(NODES.schema)
    order = list(range(table.num_rows))
    random.shuffle(order)
    assert records_from_table(table.take(pa.array(order, pa.int64()))) == held


def test_hand_made_records_round_trip_and_rows_match_the_table() -> None:
    table = node_table(tiny.RECORDS.items())
    assert records_from_table(table) == tiny.RECORDS
    rows = [row for graph_hash, record in tiny.RECORDS.items() for row in record_rows(graph_hash, record)]
    assert pa.Table.from_pylist([{**row} for row in rows], NODES.schema).equals(table)


def test_a_graph_without_nodes_is_refused_since_no_row_would_stand_for_it() -> None:
    with pytest.raises(RecordError, match="has no nodes"):
        node_table([("h", GraphRecord((Node("output"),), (GraphRecord(()),)))])


def rows_with(change: Callable[[list[dict[str, Any]]], Any]) -> pa.Table:
    rows = record_rows("f" * 32, tiny.RECORDS["f" * 32])
    change(rows)
    return pa.Table.from_pylist(rows, NODES.schema)


@pytest.mark.parametrize(
    "change, wrong",
    [
        (lambda rows: rows.pop(1), "row 1 is missing"),
        (lambda rows: rows.append(rows[0]), "occurs twice"),
        (lambda rows: rows[0].update(idx=-1), "row 0 is missing"),
        (lambda rows: rows[0].update(op="call_module"), "unknown op 'call_module'"),
        (lambda rows: rows[0].update(op=None), "op is null"),
        (lambda rows: rows[0].update(args=None), "args is null"),
        (lambda rows: rows[0].update(value="pickle"), "unknown value"),
        (lambda rows: rows[0].update(role="root"), "unknown role"),
        (lambda rows: rows[0].update(shape=[None]), "shape holds a null"),
        (lambda rows: rows[0].update(scope=None), "key column is null"),
        (lambda rows: rows[0].update(graph_hash=None), "key column is null"),
        (lambda rows: rows[0].update(scope="body_00"), "not the scope of a nested graph"),
        (lambda rows: rows[0].update(scope="../body_0"), "not the scope of a nested graph"),
        (lambda rows: rows[0].update(scope=".".join(["body_0"] * 65)), "not the scope of a nested graph"),
        (lambda rows: [row.update(scope="body_1") for row in rows if row["scope"]], "nested graph 0 is missing"),
        (lambda rows: [row.update(scope="body_0.body_0") for row in rows if row["scope"]], "row 0 is missing|missing"),
        (
            lambda rows: [row.update(scope="body_0") for row in rows[:5]] and rows.__delitem__(slice(5, None)),
            "is missing",
        ),
    ],
)
def test_rows_that_no_record_could_have_written_are_refused(change: Any, wrong: str) -> None:
    with pytest.raises(RecordError, match=wrong) as caught:
        records_from_table(rows_with(change))
    assert caught.value.kind == "record_invalid"


def test_a_table_with_a_missing_or_mistyped_column_is_refused() -> None:
    table = node_table(tiny.RECORDS.items())
    with pytest.raises(RecordError, match="lacks the column 'args'"):
        records_from_table(table.drop_columns("args"))
    odd = table.set_column(table.column_names.index("idx"), "idx", pa.array(["x"] * table.num_rows))
    with pytest.raises(RecordError, match="wrong type"):
        records_from_table(odd)


def test_columns_of_graphs_count_nested_graphs_too() -> None:
    columns = graph_columns(tiny.RECORDS["f" * 32])
    assert columns == {
        "node_count": 9, "op_count": 2, "input_count": 1, "parameter_count": 1, "symbolic": False, "effect_count": 0,
        "dtypes": ["float32"], "device": "cuda", "ops": ["operator.add", "torch.ops.higher_order.wrap"],
    }  # fmt: skip
    assert graph_columns(tiny.RECORDS["e" * 32])["symbolic"] is True
    assert graph_columns(tiny.RECORDS["d" * 32])["effect_count"] == 1
