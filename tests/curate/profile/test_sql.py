"""Profiles in SQL: ratios, causes and wrong answers of rows written by hand."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from curate import ready
from curate.profile.results import blank
from tests.warehouse import tiny
from warehouse.schema import PROFILES
from warehouse.sql import connect

H200 = "NVIDIA H200"
A, B, C, D = (letter * 32 for letter in "abcd")


def row(subgraph: str, device: str = H200, klass: str = "ok", **more: Any) -> dict[str, Any]:
    return {**blank(subgraph, "default"), "device": device, "class": klass, **more}


def timed(subgraph: str, host: float, alone: float | None, **more: Any) -> dict[str, Any]:
    """Eager takes 10 us by each clock, Inductor so many times that."""
    own = {} if alone is None else {"eager_device_us": 10.0, "inductor_device_us": 10.0 * alone}
    return row(subgraph, eager_host_us=10.0, inductor_host_us=10.0 * host, **own, **more)


ROWS = [
    timed(A, 2.0, 0.5, cause="host", headroom=1.2, reference="float64", eager_t=-6, inductor_t=-6, bytes_read=8,
          bytes_written=4, eager_host_spread=0.1, inductor_device_spread=0.3),
    timed(B, 2.0, 2.0, cause="both", headroom=3.0, reference="float64", eager_t=-6, inductor_t=None),
    timed(C, 0.5, 0.5, cause="none", headroom=1.0, reference="float64", eager_t=-5, inductor_t=-6),
    row(D, klass="compile_error", stage="compile"),
    timed(A, 1.5, None, device="cpu", cause="host", inductor_problem="output 0: shape"),
]  # fmt: skip


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("profiled")
    warehouse, snapshot = tiny.publish(root)
    table = pa.Table.from_pylist(ROWS, schema=PROFILES.schema)
    warehouse.publish(snapshot, {"profiles": table})
    return connect(root)


def ask(connection: Any, query: str, **values: Any) -> list[dict[str, Any]]:
    answer = ready.load(query).run(connection, **values) if " " not in query else connection.execute(query)
    columns = [column[0] for column in answer.description]
    return [dict(zip(columns, found, strict=True)) for found in answer.fetchall()]


def test_slowdowns_are_ratios_on_one_device(connection):
    found = {r["subgraph_hash"]: r for r in ask(connection, f"FROM slowdowns('{H200}')")}
    assert set(found) == {A, B, C}, "what was not measured has no ratio"
    assert (found[A]["host_ratio"], found[A]["device_ratio"], found[A]["floor_ratio"]) == (2.0, 0.5, 1.2)
    assert found[A]["widest_spread"] == 0.3 and found[A]["bytes_moved"] == 12
    assert [r["device_ratio"] for r in ask(connection, "FROM slowdowns('cpu')")] == [None]
    assert ask(connection, "FROM slowdowns('none')") == []


def test_host_and_device_by_family_never_mixes_devices(connection):
    rows = ask(connection, "host_or_device")
    by = {(r["device"], r["family"]): r for r in rows}
    # A and B hold linear, layer_norm and gelu; C is attention alone.
    product = by[H200, "matmul"]
    assert (product["subgraphs"], product["host_only"], product["both_clocks"]) == (2, 0.5, 0.5)
    assert product["host_speedup"] == 0.5
    assert product["device_speedup"] == round(math.sqrt(2 * 0.5), 3)
    assert product["headroom"] == 2.1
    assert by["cpu", "matmul"]["subgraphs"] == 1 and by["cpu", "matmul"]["device_speedup"] is None


def test_inductor_is_wrong_where_eager_is_right(connection):
    assert [(r["subgraph_hash"], r["device"]) for r in ask(connection, "inductor_wrong")] == [(B, H200), (A, "cpu")]
    assert len(ask(connection, "inductor_wrong", rows=1)) == 1
