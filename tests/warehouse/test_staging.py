"""Staged captures: finished or not there, never half; data only."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.warehouse.tiny import HOSTILE, RECORDS
from warehouse import staging
from warehouse.rows import node_table, records_from_table
from warehouse.storage import LocalStorage, WarehouseError

A, B = "a" * 32, "b" * 32
ONE = "01" * 16


def rows(capture: str = ONE, name: str = "tiny") -> staging.Rows:
    return {
        "captures": [{"capture_id": capture, "source": "toy", "name": name, "status": "complete", "build": "empty"}],
        "graphs": [{"graph_hash": A, "capture_id": capture, "graph_index": 0, "node_count": 5}],
        "timings": [{"capture_id": capture, "seconds": 1.5, "started_at": datetime(2026, 1, 2, tzinfo=UTC)}],
    }


def stage(root: Path, capture: str = ONE, **more: str) -> LocalStorage:
    storage = LocalStorage(root)
    staging.write(storage, capture, rows(capture, **more), node_table((h, RECORDS[h]) for h in (A, B)))
    return storage


def test_a_staged_capture_comes_back_row_for_row(tmp_path: Path):
    storage = stage(tmp_path, name=HOSTILE)
    held = staging.header(storage, ONE)
    assert held["captures"] == rows(name=HOSTILE)["captures"]
    assert held["failures"] == []
    assert records_from_table(staging.nodes(storage, ONE, [A])) == {A: RECORDS[A]}
    assert staging.table("timings", held["timings"])["started_at"].to_pylist() == [datetime(2026, 1, 2, tzinfo=UTC)]


def test_finished_lists_whole_files_and_no_temporaries(tmp_path: Path):
    storage = stage(tmp_path)
    stage(tmp_path, "ff" * 16)
    (tmp_path / "staging/01/.tmp-half").write_bytes(b"PAR1")
    (tmp_path / "staging/.tmp-x").mkdir()
    assert staging.finished(storage) == {ONE, "ff" * 16}
    assert staging.finished(LocalStorage(tmp_path / "nowhere")) == set()


def test_a_removed_capture_is_not_finished(tmp_path: Path):
    storage = stage(tmp_path)
    staging.remove(storage, [ONE, ONE, "ff" * 16])
    assert staging.finished(storage) == set()


@pytest.mark.parametrize("size", [0, 3, 200, -1])
def test_a_file_cut_short_is_no_finished_capture(tmp_path: Path, size: int):
    storage = stage(tmp_path)
    path = tmp_path / staging.path_of(ONE)
    path.write_bytes(path.read_bytes()[:size])
    assert list(staging.headers(storage, [ONE])) == [(ONE, None)]
    with pytest.raises(staging.StagingError, match="not whole"):
        staging.nodes(storage, ONE, [A])


def test_a_flipped_bit_in_the_rows_is_noticed(tmp_path: Path):
    storage = stage(tmp_path)
    path = tmp_path / staging.path_of(ONE)
    whole = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    for place in range(column.data_page_offset + 40, column.data_page_offset + column.total_compressed_size, 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(staging.StagingError):
            staging.nodes(storage, ONE, [A])


def test_a_foreign_parquet_file_is_no_finished_capture(tmp_path: Path):
    storage = stage(tmp_path)
    pq.write_table(node_table([(A, RECORDS[A])]), tmp_path / staging.path_of(ONE))
    assert list(staging.headers(storage, [ONE])) == [(ONE, None)]


def test_a_capture_under_another_captures_name_is_refused(tmp_path: Path):
    storage = stage(tmp_path)
    other = "01" + "22" * 15
    os.rename(tmp_path / staging.path_of(ONE), tmp_path / staging.path_of(other))
    with pytest.raises(staging.StagingError, match="no valid header"):
        staging.header(storage, other)


def test_a_graph_that_the_file_lacks_is_an_error_not_an_empty_graph(tmp_path: Path):
    storage = stage(tmp_path)
    with pytest.raises(staging.StagingError, match="lacks a graph"):
        staging.nodes(storage, ONE, [A, "c" * 32])


def test_a_missing_capture_is_an_error(tmp_path: Path):
    with pytest.raises(staging.StagingError, match="is gone"):
        staging.header(LocalStorage(tmp_path), ONE)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalStorage, "settle", full)
    with pytest.raises(WarehouseError, match="the disk is full"):
        stage(tmp_path)
    assert [p for p in (tmp_path / "staging").rglob("*") if p.is_file()] == []


def test_rows_of_a_table_that_is_not_staged_are_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="models"):
        staging.write(LocalStorage(tmp_path), ONE, {"models": []}, node_table([]))


HEADER = {**{name: [] for name in staging.HEADER_TABLES}, **rows()}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"captures": {}}',
        b'{"captures": [1], "graphs": [], "occurrences": [], "failures": [], "timings": []}',
        {**HEADER, "captures": []},
        {**HEADER, "captures": HEADER["captures"] * 2},
        {**HEADER, "graphs": [{"capture_id": ONE, "graph_index": 0, "node_count": 1}]},
        {**HEADER, "graphs": [{"capture_id": ONE, "graph_hash": A, "node_count": "many"}]},
        {**HEADER, "graphs": [{"capture_id": "ff" * 16, "graph_hash": A, "node_count": 1}]},
        {**HEADER, "timings": [{"capture_id": ONE, "started_at": "yesterday"}]},
        {name: part for name, part in HEADER.items() if name != "failures"},
    ],
)
def test_a_header_whose_rows_are_not_the_captures_own_is_no_finished_capture(tmp_path: Path, header: Any):
    (tmp_path / "staging/01").mkdir(parents=True)

    def found(header: Any) -> Any:
        text = header if isinstance(header, bytes) else json.dumps(header, default=str).encode()
        table = node_table([(A, RECORDS[A])]).replace_schema_metadata({b"passnet.capture": text})
        pq.write_table(table, tmp_path / staging.path_of(ONE))
        return next(staging.headers(LocalStorage(tmp_path), [ONE]))[1]

    assert found(HEADER) is not None
    assert found(header) is None


def test_a_disk_that_cannot_be_read_now_condemns_no_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    storage = stage(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(LocalStorage, "read", refuse)
    with pytest.raises(WarehouseError, match="Too many open files"):
        list(staging.headers(storage, [ONE]))
    assert staging.finished(storage) == {ONE}


def test_stray_files_among_staged_captures_are_passed_over(tmp_path: Path):
    storage = stage(tmp_path)
    (tmp_path / "staging/.DS_Store").write_text("")
    (tmp_path / "staging/01/notes.txt").write_text("")
    assert staging.finished(storage) == {ONE}
