"""Bad warehouses and bad rows: one clear line with the mend, nothing lost."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.warehouse import tiny
from tests.warehouse.test_snapshot import files, occurrence
from warehouse.schema import OCCURRENCES
from warehouse.snapshot import Snapshot, Warehouse, WarehouseError
from warehouse.sql import connect
from warehouse.storage import LocalStorage


def refused(act: Callable[[], Any], *says: str) -> str:
    with pytest.raises(WarehouseError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    for part in says:
        assert part in text
    return text


def test_a_folder_that_is_no_warehouse_says_how_to_make_one(tmp_path: Path) -> None:
    refused(lambda: Warehouse.open(tmp_path), "is not a warehouse", "passnet refresh")
    refused(lambda: Warehouse.open(tmp_path / "none"), "there is no warehouse", "passnet refresh")
    (tmp_path / "file").write_text("x")
    refused(lambda: Warehouse.open(tmp_path / "file"), "there is no warehouse")
    refused(lambda: Warehouse.open(tmp_path / "file" / "sub", create=True), "cannot create the warehouse")
    refused(lambda: Warehouse.open(tmp_path / "file", create=True), "cannot create the warehouse")
    empty = Warehouse.open(tmp_path / "empty", create=True)
    assert empty.snapshots() == [] and empty.latest() is None
    refused(lambda: empty.snapshot(), "is empty", "passnet refresh")
    refused(lambda: connect(tmp_path / "empty"), "passnet refresh")


@pytest.mark.parametrize("url", ["", "  ", "nosuch://x/y", "a\0b"])
def test_an_address_that_cannot_be_opened_is_one_line(url: str) -> None:
    refused(lambda: Warehouse.open(url))


@pytest.mark.parametrize(
    "name", ["plain", "with space", "o'hara", 'quo"te', "br[ack]et", "st*r", "ünï", "semi;colon", "%20"]
)
def test_a_warehouse_may_live_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    tiny.publish(tmp_path / name)
    assert connect(tmp_path / name).execute("SELECT count(*) FROM nodes").fetchone() == (47,)


def test_an_unwritable_warehouse_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse, first = tiny.publish(tmp_path)

    def deny(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    # Permission bits do not bind root, who runs tests in containers; the refusal is the same error either way.
    monkeypatch.setattr(LocalStorage, "create", deny)
    before = files(tmp_path)
    refused(lambda: warehouse.publish(first, {"occurrences": occurrence("x")}), "Permission denied", "--warehouse")
    assert files(tmp_path) == before


class _FullDisk:
    """A file on a disk with `room` bytes left."""

    def __init__(self, file: IO[bytes], room: int):
        self._file, self._room = file, room

    def write(self, data: bytes) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("room", [0, 4, 900])
def test_a_full_disk_loses_nothing_and_leaves_no_temporaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    warehouse, first = tiny.publish(tmp_path)
    before = files(tmp_path)
    create = LocalStorage.create
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "create", lambda self, path: _FullDisk(create(self, path), room))
        refused(lambda: warehouse.publish(first, {"occurrences": occurrence("x")}), "the disk is full", "intact")
    assert files(tmp_path) == before
    assert warehouse.publish(first, {"occurrences": occurrence("x")}).sequence == 2


def test_a_disk_that_fills_up_at_the_manifest_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, first = tiny.publish(tmp_path)
    create = LocalStorage.create

    def full_at_manifest(self: LocalStorage, path: str) -> Any:
        return _FullDisk(create(self, path), 10) if path.startswith("manifests") else create(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "create", full_at_manifest)
        refused(lambda: warehouse.publish(first, {"occurrences": occurrence("x")}), "the disk is full")
    assert [s.id for s in Warehouse.open(tmp_path).snapshots()] == [first.id]
    assert not [name for name in files(tmp_path) if ".tmp-" in name]


def break_file(root: Path, snapshot: Snapshot, change: Callable[[Path], Any]) -> Path:
    path = root / snapshot.tables["nodes"].files[0].path
    change(path)
    return path


def foreign(path: Path) -> None:
    """A Parquet file of other columns, padded to the size that the manifest states."""
    size = path.stat().st_size
    table = pa.table({"a": ["x" * 10]})
    for pad in range(size):
        pq.write_table(table.replace_schema_metadata({"pad": "x" * pad}), path, compression="none")
        if path.stat().st_size >= size:
            break
        if size - path.stat().st_size > 3000:
            table = pa.table({"a": [table.column(0)[0].as_py() + "y" * 1000]})


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda p: p.unlink(), "is missing"),
        (lambda p: p.write_bytes(p.read_bytes()[:-100]), "bytes instead of"),
        (lambda p: p.write_bytes(b""), "0 bytes instead of"),
        (lambda p: p.write_bytes(p.read_bytes()[:-8] + b"\0" * 8), "not a whole Parquet file"),
        (lambda p: p.write_bytes(b"A" * p.stat().st_size), "not a whole Parquet file"),
        (foreign, "nodes"),
    ],
)
def test_a_missing_cut_or_foreign_file_is_named(tmp_path: Path, change: Any, says: str) -> None:
    warehouse, snapshot = tiny.publish(tmp_path)
    path = break_file(tmp_path, snapshot, change)
    refused(lambda: warehouse.read(snapshot, "nodes"), str(path), says)
    refused(lambda: warehouse.check(snapshot), str(path), says)
    refused(lambda: connect(tmp_path), str(path), says)


def test_a_file_changed_in_place_is_found_by_its_hash(tmp_path: Path) -> None:
    warehouse, snapshot = tiny.publish(tmp_path)
    path = break_file(tmp_path, snapshot, lambda p: None)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    refused(lambda: warehouse.check(snapshot, contents=True), str(path), "was changed")


def edit(root: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = root / "manifests" / "00000001.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format_version": true}'])
def test_a_manifest_that_is_not_json_or_cut_short_is_named(tmp_path: Path, data: bytes) -> None:
    warehouse, _ = tiny.publish(tmp_path)
    (tmp_path / "manifests" / "00000001.json").write_bytes(data)
    refused(lambda: warehouse.snapshot(), "manifests/00000001.json", "restore it")


def test_a_damaged_old_manifest_does_not_hide_the_others(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    second = warehouse.publish(first, {"occurrences": occurrence("x")})
    (tmp_path / first.manifest).write_bytes(b"{")
    assert warehouse.snapshot() == second and warehouse.snapshot(second.id[:9]) == second
    third = warehouse.publish(second, {"occurrences": occurrence("y")})
    assert third.sequence == 3


@pytest.mark.parametrize("key", ["format_version", "schema_version"])
def test_a_snapshot_from_a_newer_version_asks_for_an_upgrade(tmp_path: Path, key: str) -> None:
    warehouse, _ = tiny.publish(tmp_path)
    edit(tmp_path, lambda d: d.update({key: 99}))
    refused(lambda: warehouse.snapshot(), f"{key} 99", "upgrade passnet")


HOSTILE_PATHS = [
    "/etc/passwd", "../../etc/passwd", "data/nodes/../../x.parquet", "data\\nodes\\x.parquet", "data/nodes//x.parquet",
    "data/models/" + "0" * 32 + ".parquet", "data/nodes/" + "0" * 32 + ".parquet\n", "file:///etc/passwd",
    "data/nodes/'; DROP.parquet", "data/nodes/*.parquet", "", "data/nodes/" + "0" * 32 + ".parquet/../x",
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_a_path_that_leaves_the_tables_folder_is_refused(tmp_path: Path, path: str) -> None:
    warehouse, _ = tiny.publish(tmp_path)
    edit(tmp_path, lambda d: d["tables"]["nodes"]["files"][0].update(path=path))
    refused(lambda: warehouse.snapshot(), "00000001.json", "damaged")
    refused(lambda: connect(tmp_path), "00000001.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["tables"]["nodes"].update(written=1),
        lambda d: d["tables"]["nodes"]["files"][0].update(rows=-1),
        lambda d: d["tables"]["nodes"]["files"][0].update(rows=True),
        lambda d: d["tables"]["nodes"]["files"][0].update(hash="x"),
        lambda d: d["tables"]["nodes"]["files"][0].update(hash=None),
        lambda d: d["tables"]["nodes"]["files"][0].pop("bytes"),
        lambda d: d["tables"].update(secrets=d["tables"]["nodes"]),
        lambda d: d.update(tables=[]),
        lambda d: d.update(tables={"nodes": 3}),
        lambda d: d.update(sequence=2),
        lambda d: d.update(sequence="1"),
        lambda d: d.update(id="0" * 32),
        lambda d: d.update(parent="../x"),
        lambda d: d.pop("id"),
    ],
)
def test_a_manifest_changed_by_hand_is_refused(tmp_path: Path, change: Any) -> None:
    warehouse, _ = tiny.publish(tmp_path)
    edit(tmp_path, change)
    refused(lambda: warehouse.snapshot(), "manifests/00000001.json")


@pytest.mark.parametrize(
    "rows, says",
    [
        (lambda: pa.table({"a": [1]}), "column"),
        (lambda: occurrence("x").append_column("extra", pa.array([1])), "'extra'"),
        (lambda: occurrence("x").set_column(2, "graph_index", pa.array(["x"])), "do not fit"),
        (lambda: occurrence(None), "null 'graph_hash'"),  # type: ignore[arg-type]
        (lambda: [occurrence("x"), occurrence("x")], "nothing was published"),
    ],
)
def test_rows_that_do_not_fit_are_not_published(tmp_path: Path, rows: Any, says: str) -> None:
    warehouse, first = tiny.publish(tmp_path)
    refused(lambda: warehouse.publish(first, {"occurrences": rows()}), says)
    refused(lambda: warehouse.publish(first, {"secrets": occurrence("x")}), "no table 'secrets'")
    assert warehouse.snapshots() == [first]


def test_names_with_quotes_newlines_sql_and_path_parts_round_trip(tmp_path: Path) -> None:
    warehouse = Warehouse.open(tmp_path, create=True)
    names = [tiny.HOSTILE, "'; DROP TABLE nodes; --", '"', "a\nb\r\n", "\\", "../..", "\0", "😀", "{0}%s$1", ""]
    table = pa.Table.from_pylist(
        [{"graph_hash": n, "capture_id": n, "graph_index": 0, "config_hash": n} for n in names], OCCURRENCES.schema
    )
    warehouse.publish(None, {"occurrences": table})
    got = connect(tmp_path).execute("SELECT graph_hash, capture_id FROM occurrences ORDER BY ALL").fetchall()
    assert sorted(got) == sorted((n, n) for n in names)
    for name in names:
        found = connect(tmp_path).execute("SELECT count(*) FROM occurrences WHERE graph_hash = ?", [name]).fetchone()
        assert found == (1,)
