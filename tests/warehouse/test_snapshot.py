"""Snapshots are published whole or not at all, read whole, and named by their content."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.warehouse import tiny
from warehouse import parquet
from warehouse.rows import node_table, records_from_table
from warehouse.schema import NODES, OCCURRENCES, TABLES
from warehouse.snapshot import Warehouse, WarehouseError


def occurrence(graph: str) -> pa.Table:
    row = {"graph_hash": graph, "capture_id": "c", "graph_index": 0, "config_hash": "config"}
    return pa.Table.from_pylist([row], OCCURRENCES.schema)


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("kind", ["path", "file://", "memory://"])
def test_what_was_published_is_read_back_on_every_kind_of_storage(tmp_path: Path, kind: str) -> None:
    url = {"path": str(tmp_path), "file://": f"file://{tmp_path}", "memory://": f"memory://{tmp_path.name}"}[kind]
    warehouse, snapshot = tiny.publish(url)
    assert records_from_table(warehouse.read(snapshot, "nodes")) == tiny.RECORDS
    again = Warehouse.open(url)
    assert again.snapshot() == snapshot
    names = set(again.read(snapshot, "models", ["name"]).column("name").to_pylist())
    assert tiny.HOSTILE in names
    again.check(snapshot, contents=True)
    second = again.publish(snapshot, {"occurrences": occurrence("x")})
    assert [s.sequence for s in again.snapshots()] == [1, 2] and second.parent == snapshot.id


def test_the_same_rows_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    tiny.publish(tmp_path / "one")
    tables = tiny.tables()
    tables["nodes"] = tables["nodes"].take(pa.array(list(reversed(range(tables["nodes"].num_rows)))))
    tables["graphs"] = pa.concat_tables([tables["graphs"].slice(3), tables["graphs"].slice(0, 3)])
    Warehouse.open(tmp_path / "two", create=True).publish(None, tables)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_clock_readings_change_neither_the_id_nor_the_manifest(tmp_path: Path) -> None:
    _, snapshot = tiny.publish(tmp_path / "one")
    tables = tiny.tables()
    column = pa.array([9.0] * 4)
    tables["timings"] = tables["timings"].set_column(1, "seconds", column)
    other = Warehouse.open(tmp_path / "two", create=True).publish(None, tables)
    assert other.id == snapshot.id
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    assert {k for k in one if one[k] != two[k]} == {f"data/timings/{snapshot.id}-0.parquet"}


def test_nothing_new_publishes_nothing(tmp_path: Path) -> None:
    warehouse, snapshot = tiny.publish(tmp_path)
    before = files(tmp_path)
    assert warehouse.publish(snapshot, {}) == snapshot
    assert warehouse.publish(snapshot, {"captures": tiny.tables()["captures"]}, replace={"captures"}) == snapshot
    assert files(tmp_path) == before


def test_a_child_carries_its_parents_files_and_replaces_named_tables(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    second = warehouse.publish(first, {"occurrences": [occurrence("x"), occurrence("y")]}, replace={"models"})
    assert second.rows("occurrences") == first.rows("occurrences") + 2
    assert second.rows("models") == 0
    assert second.tables["nodes"] == first.tables["nodes"]
    assert first.rows("models") == 5 and warehouse.read(first, "models").num_rows == 5


def test_rows_can_come_from_a_parquet_file(tmp_path: Path) -> None:
    pq.write_table(occurrence("x"), tmp_path / "rows.parquet")
    warehouse = Warehouse.open(tmp_path / "lake", create=True)
    snapshot = warehouse.publish(None, {"occurrences": [tmp_path / "rows.parquet"]})
    assert warehouse.read(snapshot, "occurrences").equals(occurrence("x"))
    with pytest.raises(WarehouseError, match=r"cannot read the rows of occurrences in .*none\.parquet"):
        warehouse.publish(snapshot, {"occurrences": [tmp_path / "none.parquet"]})


def test_large_tables_are_cut_into_files_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "FILE_ROWS", 20)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 8)
    warehouse, snapshot = tiny.publish(tmp_path)
    assert [f.rows for f in snapshot.tables["nodes"].files] == [20, 20, 7]
    metadata = pq.read_metadata(warehouse.addresses(snapshot, "nodes")[0])
    assert metadata.num_row_groups == 3 and metadata.row_group(0).column(0).is_stats_set
    assert records_from_table(warehouse.read(snapshot, "nodes")) == tiny.RECORDS


def test_a_second_publisher_of_the_same_sequence_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    second = warehouse.publish(first, {"occurrences": occurrence("x")})
    with pytest.raises(WarehouseError, match="another refresh published snapshot 2"):
        warehouse.publish(first, {"occurrences": occurrence("y")})
    with pytest.raises(WarehouseError, match="another refresh published"):
        warehouse.publish(None, tiny.tables())
    assert warehouse.latest() == second


def _race(root: str, start: float, number: int, results: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    warehouse = Warehouse.open(root)
    parent = warehouse.snapshot(1)
    time.sleep(max(0.0, start - time.time()))
    try:
        warehouse.publish(parent, {"occurrences": occurrence(f"racer {number}")})
        results.put(number)
    except WarehouseError as error:
        results.put(str(error))


def test_of_publishers_racing_for_one_sequence_exactly_one_wins(tmp_path: Path) -> None:
    tiny.publish(tmp_path)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    start = time.time() + 0.3
    racers = [context.Process(target=_race, args=(str(tmp_path), start, i, results)) for i in range(4)]
    for racer in racers:
        racer.start()
    outcomes = [results.get(timeout=60) for _ in racers]
    for racer in racers:
        racer.join()
    winners = [o for o in outcomes if isinstance(o, int)]
    assert len(winners) == 1 and all("another refresh published" in o for o in outcomes if isinstance(o, str))
    warehouse = Warehouse.open(tmp_path)
    read = warehouse.read(warehouse.snapshot(2), "occurrences").column("graph_hash").to_pylist()
    assert f"racer {winners[0]}" in read


def test_a_publisher_killed_before_the_manifest_leaves_no_trace_for_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, first = tiny.publish(tmp_path)

    def die(*_: object) -> None:
        os.kill(os.getpid(), 9)

    child = multiprocessing.get_context("fork").Process(
        target=lambda: (
            setattr(warehouse.storage, "claim", die),
            warehouse.publish(first, {"occurrences": occurrence("x")}),
        )
    )
    child.start()
    child.join()
    assert child.exitcode == -9
    again = Warehouse.open(tmp_path)
    assert again.latest() == first
    second = again.publish(first, {"occurrences": occurrence("x")})
    tiny.publish(tmp_path / "other")
    other = Warehouse.open(tmp_path / "other")
    assert other.publish(other.latest(), {"occurrences": occurrence("x")}) == second
    assert (tmp_path / second.manifest).read_bytes() == (tmp_path / "other" / second.manifest).read_bytes()


def test_snapshots_are_found_by_id_beginning_of_an_id_and_number(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    second = warehouse.publish(first, {"occurrences": occurrence("x")})
    for name in (first.id, first.id[:8], first.id.upper(), 1, "1", "00000001"):
        assert warehouse.snapshot(name) == first
    assert warehouse.snapshot() == second
    for name in ("zz", "", 7, "../00000001"):
        with pytest.raises(WarehouseError, match=r"no snapshot is called .* there are: 1 \("):
            warehouse.snapshot(name)


def test_prune_deletes_old_snapshots_and_only_what_nothing_names(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    second = warehouse.publish(first, {"occurrences": occurrence("x")}, replace={"models"})
    old, young = tmp_path / "data/nodes/.tmp-old", tmp_path / "data/nodes/.tmp-young"
    stranger = tmp_path / "data/nodes/notes.txt"
    for path in (old, young, stranger):
        path.write_bytes(b"x")
    os.utime(old, (0, 0))
    os.utime(stranger, (0, 0))
    before = files(tmp_path)
    planned = warehouse.prune(keep=1, dry_run=True)
    assert files(tmp_path) == before
    done = warehouse.prune(keep=1)
    assert done == planned and [s.id for s in done.snapshots] == [first.id]
    models = first.tables["models"].files[0].path
    assert set(done.files) == {models, "data/nodes/.tmp-old"}
    assert done.bytes == len(before[models]) + 1 + len(before[first.manifest])
    assert set(before) - set(files(tmp_path)) == {models, "data/nodes/.tmp-old", first.manifest}
    warehouse.check(second, contents=True)


def test_the_newest_snapshot_cannot_be_pruned(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    with pytest.raises(WarehouseError, match="is the newest one"):
        warehouse.prune(ids=[first.id])
    with pytest.raises(WarehouseError, match="cannot keep 0"):
        warehouse.prune(keep=0)
    assert warehouse.prune(keep=5).snapshots == ()


def test_prune_and_publish_exclude_each_other(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    with warehouse.storage.lock(exclusive=False), pytest.raises(WarehouseError, match="is being refreshed"):
        warehouse.prune(keep=1)
    with warehouse.storage.lock(exclusive=True), pytest.raises(WarehouseError, match="is being pruned"):
        warehouse.publish(first, {"occurrences": occurrence("x")})


def test_a_manifest_tells_the_files_with_rows_bytes_and_hash_and_no_time(tmp_path: Path) -> None:
    _, snapshot = tiny.publish(tmp_path)
    manifest = json.loads((tmp_path / snapshot.manifest).read_text())
    assert set(manifest) == {"format_version", "schema_version", "id", "sequence", "parent", "tables"}
    assert set(manifest["tables"]) == set(TABLES)
    nodes = manifest["tables"]["nodes"]
    assert nodes["expected"] == nodes["written"] == 47
    assert set(nodes["files"][0]) == {"path", "rows", "bytes", "hash"}
    assert set(manifest["tables"]["timings"]["files"][0]) == {"path", "rows"}


def test_nodes_are_stored_sorted_for_scanning(tmp_path: Path) -> None:
    warehouse, snapshot = tiny.publish(tmp_path)
    stored = warehouse.read(snapshot, "nodes")
    assert stored.sort_by([(key, "ascending") for key in NODES.sort]).equals(stored)
    assert node_table(tiny.RECORDS.items()).num_rows == stored.num_rows
