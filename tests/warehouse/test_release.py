"""A released snapshot: read by those it is for, the same bytes each time, whole or not there."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from tests.warehouse import tiny
from warehouse.release.folder import release
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.sql import connect
from warehouse.storage import WarehouseError

ROOT = Path(__file__).parents[2]
HELD = {"models": 5, "captures": 4, "graphs": 6, "nodes": 47, "occurrences": 7, "failures": 1}
#: What a Hub's tags and another package's names may hold.
STRANGE = "mit |x|\n- evil: [`]<script>\u202e" + "y" * 500


def published(root: Path, **licences: str) -> tuple[Warehouse, Snapshot]:
    """The tiny warehouse with times of capture and licences, `nodes` in two files."""
    tables: dict[str, Any] = tiny.tables()
    models = tables["models"].to_pylist()
    for row in models:
        row["license"] = licences.get(row["source"], "apache-2.0")
    tables["models"] = pa.Table.from_pylist(models, tables["models"].schema)
    timings = tables["timings"].to_pylist()
    for i, row in enumerate(timings, 1):
        row["started_at"] = datetime.datetime(2026, 5, i, 23, 30, tzinfo=datetime.UTC)
    tables["timings"] = pa.Table.from_pylist(timings, tables["timings"].schema)
    tables["nodes"] = [tables["nodes"].slice(0, 20), tables["nodes"].slice(20)]
    warehouse = Warehouse.open(root, create=True)
    return warehouse, warehouse.publish(None, tables)


def export(lake: Path, folder: Path) -> Any:
    warehouse = Warehouse.open(lake)
    return release(warehouse, warehouse.snapshot(), connect(lake), folder)


def read(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("released") / "lake"
    published(root, transformers=STRANGE)
    return root


@pytest.fixture(scope="module")
def folder(lake: Path) -> Path:
    export(lake, lake.parent / "out")
    return lake.parent / "out"


def rows_of(lake: Path, table: str) -> list[dict[str, Any]]:
    warehouse = Warehouse.open(lake)
    return warehouse.read(warehouse.snapshot(), table).to_pylist()  # type: ignore[no-any-return]


def test_a_release_holds_every_table_with_rows_and_no_clock_readings(folder: Path):
    assert set(os.listdir(folder)) == {*HELD, "README.md", "croissant.json"}
    assert sorted(p.name for p in (folder / "nodes").iterdir()) == [
        "train-00000-of-00002.parquet",
        "train-00001-of-00002.parquet",
    ]


def test_duckdb_reads_it_by_globbing_and_pandas_by_folder(folder: Path, lake: Path):
    for table, rows in HELD.items():
        glob = str(folder / table / "train-*.parquet")
        assert duckdb.execute("SELECT count(*) FROM read_parquet($glob)", {"glob": glob}).fetchall() == [(rows,)]
    frame = pd.read_parquet(folder / "graphs")
    assert sorted(frame["graph_hash"]) == sorted(tiny.RECORDS)
    assert list(frame["node_count"]) == [row["node_count"] for row in rows_of(lake, "graphs")]


def test_datasets_reads_every_configuration_and_takes_graphs_by_default(
    folder: Path, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    assert set(datasets.get_dataset_config_names(str(folder))) == set(HELD)
    for table in HELD:
        found = datasets.load_dataset(str(folder), table, split="train", cache_dir=str(tmp_path))
        assert found.to_list() == rows_of(lake, table)
    whole = datasets.load_dataset(str(folder), cache_dir=str(tmp_path))
    assert list(whole) == ["train"] and "graph_hash" in whole["train"].column_names
    streamed = datasets.load_dataset(str(folder), "nodes", split="train", streaming=True)
    assert sum(1 for _ in streamed) == HELD["nodes"]


def test_mlcroissant_finds_no_fault_and_reads_every_record(folder: Path, lake: Path):
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    issues = dataset.metadata.ctx.issues
    assert (set(issues.errors), set(issues.warnings)) == (set(), set())
    assert dataset.metadata.date_published.date() == datetime.date(2026, 5, 4)
    for table in HELD:
        plain = [
            {key.split("/")[1]: value.decode() if isinstance(value, bytes) else value for key, value in record.items()}
            for record in dataset.records(table)
        ]
        expected = rows_of(lake, table)
        keys = [key for key, value in expected[0].items() if isinstance(value, str)]
        assert [[r[k] for k in keys] for r in plain] == [[r[k] for k in keys] for r in expected]


def test_croissant_names_the_hash_of_every_shard(folder: Path):
    import hashlib

    described = json.loads((folder / "croissant.json").read_text())
    files = {d["contentUrl"]: d["sha256"] for d in described["distribution"] if d["@type"] == "cr:FileObject"}
    shards = {name: data for name, data in read(folder).items() if name.endswith(".parquet")}
    assert files == {name: hashlib.sha256(data).hexdigest() for name, data in shards.items()}


def test_what_strangers_wrote_stays_text_in_the_card(folder: Path):
    text = (folder / "README.md").read_text()
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front)["license"] == ["apache-2.0", "other"]
    assert "evil" not in front and "<script>" not in body.replace("\\<", "")
    row = next(line for line in body.splitlines() if "evil" in line)
    assert row.replace("\\|", "").count("|") == 5 and row.isprintable()


def test_the_card_counts_models_by_licence(tmp_path: Path):
    published(tmp_path / "lake", timm="bsd-3-clause", transformers="")
    found = export(tmp_path / "lake", tmp_path / "out")
    assert found.licences == [
        {"license": "bsd-3-clause", "models": 3, "configurations": 2, "graphs": 3},
        {"license": "", "models": 1, "configurations": 1, "graphs": 3},
    ]
    assert found.licence_identifiers == ["bsd-3-clause", "unknown"]


def test_the_same_snapshot_gives_the_same_bytes(folder: Path, lake: Path, tmp_path: Path):
    shutil.copytree(lake, tmp_path / "copy")
    export(tmp_path / "copy", tmp_path / "deep" / "new")
    assert read(tmp_path / "deep" / "new") == read(folder)


def test_an_earlier_release_is_replaced_and_nothing_else_is(folder: Path, lake: Path, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    export(lake, out)  # empty: taken
    other = tmp_path / "other"
    published(other)
    export(other, out)
    assert read(out) != read(folder)
    export(lake, out)
    assert read(out) == read(folder)
    before = read(out)
    for stranger in ("notes.txt", "graphs/mine.parquet", ".git/config"):
        (out / stranger).parent.mkdir(exist_ok=True)
        (out / stranger).write_text("mine")
        with pytest.raises(WarehouseError, match="which is not of an export") as refused:
            export(lake, out)
        assert stranger in str(refused.value)
        (out / stranger).unlink()
    assert read(out) == before
    (out / "link").symlink_to(tmp_path)
    with pytest.raises(WarehouseError, match="'link'"):
        export(lake, out)
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "below", lake, Path("/")):
        with pytest.raises(WarehouseError, match="cannot export"):
            export(lake, wrong)
    assert (tmp_path / "file").read_text() == ""
    assert {p.name for p in tmp_path.iterdir()} == {"out", "other", "file"}


#: The number of steps is given; the process ends after that many as a killed one does.
KILLED = """
import os, sys
from pathlib import Path
from tests.warehouse.test_release import export
from warehouse.storage import LocalStorage
left = int(sys.argv[3])
def dying(step):
    def run(*args):
        global left
        if left == 0:
            os._exit(9)
        left -= 1
        return step(*args)
    return run
LocalStorage.settle = dying(LocalStorage.settle)
LocalStorage.move = dying(LocalStorage.move)
export(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("steps", [0, 4, 8, 9])
def test_a_killed_export_leaves_nothing_that_looks_whole(folder: Path, lake: Path, tmp_path: Path, steps: int):
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(lake), str(out), str(steps)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    assert done.returncode == 9, done.stderr
    assert not out.exists()
    export(lake, out)
    assert read(out) == read(folder) and os.listdir(tmp_path) == ["out"]


def test_two_exports_to_one_place_do_not_mix(lake: Path, tmp_path: Path):
    import fcntl

    (tmp_path / ".out.unfinished").mkdir()
    handle = os.open(tmp_path / ".out.unfinished", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(WarehouseError, match="another export"):
        export(lake, tmp_path / "out")
    os.close(handle)
    export(lake, tmp_path / "out")


def test_a_damaged_file_is_named_and_nothing_is_written(lake: Path, tmp_path: Path):
    copy = tmp_path / "lake"
    shutil.copytree(lake, copy)
    shard = next((copy / "data" / "occurrences").iterdir())
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    warehouse = Warehouse.open(copy)
    connection = connect(copy)
    with pytest.raises(WarehouseError, match=f"{shard.name} was changed"):
        release(warehouse, warehouse.snapshot(), connection, tmp_path / "out")
    shard.unlink()
    with pytest.raises(WarehouseError, match="is not a whole Parquet file"):
        release(warehouse, warehouse.snapshot(), connection, tmp_path / "out")
    assert os.listdir(tmp_path) == ["lake"]


def test_a_snapshot_without_rows_is_refused(tmp_path: Path):
    empty = {name: rows.slice(0, 0) for name, rows in tiny.tables().items()}
    Warehouse.open(tmp_path / "lake", create=True).publish(None, empty)
    with pytest.raises(WarehouseError, match="has no rows to export"):
        export(tmp_path / "lake", tmp_path / "out")
