"""Merging: the kept row depends on the captures alone, never on partitions, order, workers or repetition."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dask
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.least import KEYS, kept_rows, rank
from dedup.merge import merge, priority
from extract.model import Capture, CapturedGraph, Failure, ModelRef, Variant
from extract.staged import stage
from tests.warehouse.tiny import HOSTILE, RECORDS
from warehouse import staging
from warehouse.rows import records_from_table
from warehouse.schema import MODELS
from warehouse.snapshot import Warehouse

A, B, C, D = (letter * 32 for letter in "abcd")
FAILED = Failure("timeout", "trace", "Deadline", "the deadline passed", "")


def captured(name: str, *graphs: str, build: str = "empty", failure: Failure | None = None) -> Capture:
    ref = ModelRef("toy", name, f'{{"name":"{name}"}}', "toy", "test", "vision", "1")
    made = tuple(CapturedGraph(i, RECORDS[h], h, h, h, h) for i, h in enumerate(graphs))
    return Capture(ref, Variant(), build, made, (), failure, 1, {}, 1.0)


def staged(root: Path, *captures: Capture) -> tuple[Warehouse, list[str]]:
    warehouse = Warehouse.open(root, create=True)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return warehouse, [stage(c, warehouse.storage.url, now, 1.0)["capture_id"] for c in captures]


def models(*captures: Capture) -> list[pa.Table]:
    rows = [
        {"source": c.ref.source, "name": c.ref.name, "config_hash": c.ref.config_hash, "revision": "1"}
        for c in captures
    ]
    return [pa.Table.from_pylist(rows, MODELS.schema)]


def published(root: Path) -> dict[str, bytes]:
    """Every byte that a refresh publishes, measured tables aside."""
    return {
        str(p.relative_to(root)): p.read_bytes()
        for folder in ("data", "manifests")
        for p in (root / folder).rglob("*")
        if p.is_file() and "timings" not in p.parts
    }


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["00aa", "7fbb", "80cc", "ffdd", "no hash", ""]),
        st.integers(0, 5),
        st.text("01", min_size=2, max_size=2),
    )
)


@settings(deadline=None, max_examples=25)
@given(ROWS, st.integers(1, 5), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_row_kept_is_the_least_over_any_parts_and_buckets_in_any_order(rows, parts, buckets, shuffler):
    expected: dict[str, str] = {}
    for graph, first, capture in rows:
        text = rank(first, capture, 0)
        expected[graph] = min(expected.get(graph, text), text)
    shuffler.shuffle(rows)
    keys = [
        pa.table(
            {"graph_hash": [r[0] for r in rows[p::parts]], "rank": [rank(r[1], r[2], 0) for r in rows[p::parts]]},
            schema=KEYS,
        )
        for p in range(parts)
    ]
    kept = dask.compute(kept_rows([dask.delayed(table) for table in keys], buckets), scheduler="synchronous")[0]
    found = [row for table, numbers in zip(keys, kept, strict=True) for row in table.take(numbers).to_pylist()]
    assert {row["graph_hash"]: row["rank"] for row in found} == expected
    assert len(found) == len(expected), "a hash is kept once"
    assert all(numbers.to_pylist() == sorted(numbers.to_pylist()) for numbers in kept)


def test_rank_sorts_as_priority_then_id_then_index():
    expected = [(p, c, i) for p in (0, 2, 10) for c in ("00", "0f", "f0") for i in (0, 9, 10, 100)]
    shuffled = random.Random(0).sample(expected, len(expected))
    assert sorted(shuffled, key=lambda key: rank(*key)) == expected


def test_complete_captures_come_before_partial_ones_and_empty_weights_before_real_ones():
    order = [priority({"status": s, "build": b}) for s in ("complete", "partial") for b in ("empty", "meta", "real")]
    assert order == sorted(set(order))


def test_one_graph_is_kept_and_every_occurrence_of_all(tmp_path: Path):
    both = captured("one", A, B), captured("two", B, C, B)
    warehouse, ids = staged(tmp_path, *both)
    found = merge(warehouse, None, ids, models(*both))
    assert (found.graphs, found.unique_graphs, found.new_graphs, found.damaged) == (5, 3, 3, ())
    assert found.snapshot is not None
    occurrences = warehouse.read(found.snapshot, "occurrences", ["graph_hash"])["graph_hash"].to_pylist()
    assert sorted(occurrences) == [A, B, B, B, C]
    kept = records_from_table(warehouse.read(found.snapshot, "nodes"))
    assert kept == {h: RECORDS[h] for h in (A, B, C)}


def test_a_graph_of_a_partial_capture_gives_way_to_one_of_a_complete_capture(tmp_path: Path):
    captures = [captured(f"partial{i}", A, failure=FAILED) for i in range(5)] + [captured("whole", A)]
    warehouse, ids = staged(tmp_path, *captures)
    found = merge(warehouse, None, ids, [])
    assert found.snapshot is not None
    assert warehouse.read(found.snapshot, "graphs")["capture_id"].to_pylist() == [ids[-1]]


def test_a_failed_capture_is_a_row_and_brings_no_graph(tmp_path: Path):
    warehouse, ids = staged(tmp_path, captured(HOSTILE, failure=FAILED))
    found = merge(warehouse, None, ids, [])
    assert found.snapshot is not None and found.graphs == 0
    assert warehouse.read(found.snapshot, "failures")["name"].to_pylist() == [HOSTILE]
    assert "nodes" not in found.snapshot.tables or found.snapshot.tables["nodes"].written == 0


def test_the_current_snapshot_keeps_its_row_and_gains_occurrences(tmp_path: Path):
    warehouse, first = staged(tmp_path, captured("one", A))
    parent = merge(warehouse, None, first, []).snapshot
    _, second = staged(tmp_path, captured("two", A, D))
    found = merge(warehouse, parent, second, [])
    assert found.snapshot is not None and found.new_graphs == 1
    graphs = warehouse.read(found.snapshot, "graphs").to_pylist()
    assert {(g["graph_hash"], g["capture_id"]) for g in graphs} == {(A, first[0]), (D, second[0])}
    occurrences = warehouse.read(found.snapshot, "occurrences").to_pylist()
    assert {(o["graph_hash"], o["capture_id"]) for o in occurrences} == {(A, first[0]), (A, second[0]), (D, second[0])}


def test_a_second_name_of_a_model_adds_one_row_and_no_capture(tmp_path: Path):
    one = captured("one", A)
    twin = replace(one, ref=replace(one.ref, name="twin"))
    warehouse, ids = staged(tmp_path, one)
    parent = merge(warehouse, None, ids, models(one)).snapshot
    found = merge(warehouse, parent, [], models(one, twin))
    assert found.snapshot is not None
    assert warehouse.read(found.snapshot, "models")["name"].to_pylist() == ["one", "twin"]
    assert warehouse.read(found.snapshot, "captures").num_rows == 1


def test_nothing_new_publishes_nothing(tmp_path: Path):
    one = captured("one", A)
    warehouse, ids = staged(tmp_path, one)
    parent = merge(warehouse, None, ids, models(one)).snapshot
    assert merge(warehouse, parent, [], models(one)).snapshot == parent
    assert len(warehouse.snapshots()) == 1


def test_staged_files_go_once_their_captures_are_published(tmp_path: Path):
    warehouse, ids = staged(tmp_path, captured("one", A), captured("two", B))
    merge(warehouse, None, ids[:1], [])
    assert staging.finished(warehouse.storage) == {ids[1]}


def test_a_damaged_staged_file_stops_the_merge_and_names_the_capture(tmp_path: Path):
    warehouse, ids = staged(tmp_path, captured("one", A), captured("two", B))
    path = tmp_path / staging.path_of(ids[0])
    path.write_bytes(path.read_bytes()[:100])
    found = merge(warehouse, None, ids, [])
    assert found.snapshot is None and found.damaged == (ids[0],)
    assert warehouse.latest() is None
    assert staging.finished(warehouse.storage) == {ids[1]}, "only the damaged one is to be made again"


def test_what_is_wrong_with_a_staged_file_survives_the_way_from_a_worker():
    error = pickle.loads(pickle.dumps(staging.StagingError(A, "is gone")))
    assert (error.capture_id, str(error)) == (A, f"staged capture {A} is gone")


def test_node_rows_damaged_behind_a_whole_footer_stop_the_merge_too(tmp_path: Path):
    warehouse, ids = staged(tmp_path, captured("one", A), captured("two", B))
    path = tmp_path / staging.path_of(ids[0])
    data = bytearray(path.read_bytes())
    data[4:400] = bytes(396)
    path.write_bytes(data)
    found = merge(warehouse, None, ids, [])
    assert found.snapshot is None and found.damaged == (ids[0],)
    assert warehouse.latest() is None


@pytest.mark.parametrize("seed", range(3))
def test_the_same_captures_give_the_same_bytes_in_any_order_and_batching(tmp_path: Path, seed: int):
    captures = [captured("one", A, B), captured("two", B, C, build="real"), captured("three", C, D, failure=FAILED)]
    straight, again = tmp_path / "straight", tmp_path / "again"
    warehouse, ids = staged(straight, *captures)
    merge(warehouse, None, ids, models(*captures))
    order = captures[seed:] + captures[:seed]
    warehouse, ids = staged(again, *order)
    merge(warehouse, None, [*ids[1:], *ids], models(*order))
    assert published(again) == published(straight)


def test_workers_of_a_cluster_give_the_bytes_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from distributed import Client

    captures = [captured(f"model {i}", *random.Random(i).sample([A, B, C, D], 2)) for i in range(9)]
    warehouse, ids = staged(tmp_path / "straight", *captures)
    merge(warehouse, None, ids, models(*captures))
    monkeypatch.setattr("dedup.merge.CHUNK", 2)
    warehouse, ids = staged(tmp_path / "spread", *captures)
    with Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"):
        merge(warehouse, None, ids, models(*captures))
    assert published(tmp_path / "spread") == published(tmp_path / "straight")


def test_nodes_are_cut_into_pieces_by_graph_hash_whichever_workers_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dedup.merge.PIECE_ROWS", 5)
    captures = [captured(f"model {i}", *random.Random(i).sample([A, B, C, D], 2)) for i in range(6)]
    warehouse, ids = staged(tmp_path, *captures)
    snapshot = merge(warehouse, None, ids, models(*captures)).snapshot
    assert snapshot is not None
    files = snapshot.tables["nodes"].files
    assert len(files) > 1
    assert records_from_table(warehouse.read(snapshot, "nodes")) == {h: RECORDS[h] for h in (A, B, C, D)}
    assert warehouse.prune(keep=1).files == (), "nothing is left that no snapshot names"
