"""Finished rows survive kills; items come in the order in which they are wanted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import torch

from curate.profile.items import Items
from curate.profile.results import Results, blank
from tests.curate.profile.graphs import named, record, write
from warehouse.graph.record import RecordError
from warehouse.schema import PROFILES


def row(name: str, klass: str = "ok", device: str = "cpu", **more):
    return {**blank(named(name), "default"), "device": device, "class": klass, **more}


def test_rows_come_back_from_disk_with_every_column(tmp_path):
    results = Results(tmp_path)
    results.append(row("a", eager_host_us=1.5, compared=["recipe"]))
    results.close()
    table = Results(tmp_path).table()
    assert table.schema.equals(PROFILES.schema)
    assert table.column("eager_host_us").to_pylist() == [1.5]


def test_a_line_cut_short_by_a_kill_costs_itself_alone(tmp_path):
    results = Results(tmp_path)
    for name in "abc":
        results.append(row(name))
    results.close()
    (path,) = tmp_path.glob("*.jsonl")
    path.write_text(path.read_text()[:-40])
    assert Results(tmp_path).finished("cpu", "default") == {named("a"), named("b")}


def test_a_later_run_writes_a_file_of_its_own_and_its_rows_win(tmp_path):
    for klass in ("device_error", "ok"):
        results = Results(tmp_path)
        results.append(row("a", klass))
        results.close()
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    (only,) = Results(tmp_path).rows()
    assert only["class"] == "ok"


def test_what_may_be_the_devices_fault_is_tried_again_and_other_failures_are_not(tmp_path):
    results = Results(tmp_path)
    results.append(row("lost", "device_error"))
    results.append(row("bad", "compile_error"))
    results.append(row("elsewhere", device="NVIDIA H200"))
    assert results.finished("cpu", "default") == {named("bad")}
    assert results.finished("NVIDIA H200", "default") == {named("elsewhere")}
    assert results.finished("cpu", "max-autotune") == set()


@pytest.mark.parametrize("wrong", [{"class": "odd"}, {"class": "ok", "speed": 1}])
def test_a_row_that_is_none_is_not_written(tmp_path, wrong):
    with pytest.raises(ValueError, match="odd|speed"):
        Results(tmp_path).append({**row("a"), **wrong})
    assert Results(tmp_path).rows() == []


def test_infinity_and_nan_become_null(tmp_path):
    results = Results(tmp_path)
    results.append(row("a", eager_max_rel=float("inf"), inductor_max_rel=float("nan")))
    assert Results(tmp_path).rows()[0]["eager_max_rel"] is None


def test_items_come_in_file_order_or_by_priority(tmp_path):
    records = {name: record(lambda x, n=n: x + n, torch.randn(2)) for n, name in enumerate(("c", "a", "b"))}
    assert Items.read(write(tmp_path / "items.parquet", records)).order == [named(n) for n in "cab"]
    items = Items.read(write(tmp_path / "items.parquet", records, {"c": 3, "a": 2, "b": 1}))
    assert items.order == [named(n) for n in "bac"]
    for name, graph in records.items():
        assert items.record(named(name)) == graph


def test_a_file_without_the_columns_of_nodes_is_refused():
    with pytest.raises(RecordError, match="lack the column"):
        Items(pa.table({"graph_hash": ["a"]}))


def test_the_page_lists_every_class_and_every_count():
    from curate.profile.classes import CLASSES
    from curate.profile.clocks import LADDER, REPLAYS

    page = (Path(__file__).parents[3] / "docs/profiling.md").read_text()
    for name, meaning in CLASSES.items():
        assert f"| `{name}` | {meaning} |" in page
    for _, host, event, warm, repeats in LADDER:
        assert f"| {host} | {event} | {warm} | {repeats} | {REPLAYS} |" in page
