"""`passnet decompose`: what is cut is published once, whatever is killed, and nothing that fails ends the run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dedup.hashes import hashes
from extract.subgraphs import job
from flows import decompose as flow
from tests.flows.conftest import Passnet, refused
from tests.warehouse import tiny
from warehouse import cutting
from warehouse.rows import records_from_table
from warehouse.snapshot import Warehouse
from warehouse.storage import open_storage

TABLES = ("subgraphs", "subgraph_nodes", "subgraph_occurrences", "decompositions", "subgraph_failures")


@pytest.fixture(scope="module")
def decomposed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """A tiny warehouse that was decomposed, and what the command printed."""
    lake = tmp_path_factory.mktemp("decomposed") / "lake"
    tiny.publish(lake)
    command = [sys.executable, "-m", "flows.cli", "decompose", "--warehouse", str(lake), "--workers", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return lake, json.loads(done.stdout)


def files(lake: Path) -> dict[str, list[str]]:
    snapshot = Warehouse.open(lake).snapshot()
    return {name: [file.path for file in snapshot.tables[name].files] for name in TABLES}


def test_every_graph_is_decomposed_and_every_subgraph_is_what_its_hash_says(decomposed):
    lake, said = decomposed
    warehouse = Warehouse.open(lake)
    snapshot = warehouse.snapshot()
    graphs = set(warehouse.read(snapshot, "graphs", ["graph_hash"])["graph_hash"].to_pylist())
    assert set(warehouse.read(snapshot, "decompositions")["graph_hash"].to_pylist()) == graphs
    assert said["graphs"] == len(graphs) and said["failed"] == {}
    records = records_from_table(warehouse.read(snapshot, "subgraph_nodes"))
    rows = warehouse.read(snapshot, "subgraphs").to_pylist()
    assert rows and {row["subgraph_hash"] for row in rows} == set(records)
    for row in rows:
        assert hashes(records[row["subgraph_hash"]]).graph_hash == row["subgraph_hash"]
        assert row["structure_hash"] == hashes(records[row["subgraph_hash"]]).structure_hash
        assert row["node_count"] == len(records[row["subgraph_hash"]].nodes)
    places = warehouse.read(snapshot, "subgraph_occurrences").to_pylist()
    assert {(p["subgraph_hash"], p["kind"]) for p in places} == {(r["subgraph_hash"], r["kind"]) for r in rows}
    assert all(p["rows"] == sorted(p["rows"]) and p["rows"][0] == p["first_row"] for p in places)


def test_a_second_run_has_nothing_to_do_and_leaves_no_cuts_behind(passnet: Passnet, decomposed):
    lake, said = decomposed
    code, out, err = passnet("decompose", "--warehouse", str(lake), "--json")
    again = json.loads(out)
    assert (code, again["graphs"], again["held"]) == (0, 0, said["graphs"]), err
    assert again["snapshot"] == said["snapshot"] and again["subgraphs"] == said["subgraphs"]
    assert not cutting.finished(open_storage(str(lake)))


@pytest.mark.slow
def test_killed_at_any_moment_the_same_command_gives_the_same_files(decomposed, tmp_path: Path):
    expected = files(decomposed[0])
    tiny.publish(tmp_path / "lake")
    command = [sys.executable, "-m", "flows.cli", "decompose", "--warehouse", str(tmp_path / "lake"), "--workers", "1"]
    draw = random.Random(0)
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(1.0, 12.0))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    assert files(tmp_path / "lake") == expected


def test_the_result_does_not_depend_on_the_order_of_cuts(decomposed, tmp_path: Path):
    """What the workers do, done here one by one, in an order of our own."""
    tiny.publish(tmp_path / "lake")
    warehouse = Warehouse.open(tmp_path / "lake")
    parent = warehouse.snapshot()
    waiting, _ = flow.undecomposed(warehouse, parent)
    first = flow.jobs(warehouse, parent, dict.fromkeys(waiting))
    for name in sorted(first, reverse=True):
        assert job.run(first[name], {})["class"] is None
    tables = [cutting.read(warehouse.storage, name)[0]["decompositions"] for name in first]
    second = flow.jobs(warehouse, parent, flow.sequences(warehouse, parent, flow.pa.concat_tables(tables)))
    for name in second:
        job.run(second[name], {})
    flow.publish(warehouse, parent, [*second, *first])
    assert files(tmp_path / "lake") == files(decomposed[0])


def test_a_damaged_cut_is_told_from_a_finished_one(tmp_path: Path):
    tiny.publish(tmp_path / "lake")
    warehouse = Warehouse.open(tmp_path / "lake")
    parent = warehouse.snapshot()
    (name, payload), *_ = flow.jobs(warehouse, parent, dict.fromkeys(flow.undecomposed(warehouse, parent)[0])).items()
    job.run(payload, {})
    path = tmp_path / "lake" / cutting.path_of(name)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(cutting.CutDamaged):
        cutting.read(warehouse.storage, name)


def test_a_graph_whose_rows_are_damaged_is_a_classed_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tiny.publish(tmp_path / "lake")
    warehouse = Warehouse.open(tmp_path / "lake")
    parent = warehouse.snapshot()
    (name, payload), *_ = flow.jobs(warehouse, parent, dict.fromkeys(flow.undecomposed(warehouse, parent)[0])).items()

    def broken(given: object) -> None:
        raise job.RecordError("record_invalid", "row 3: its shape is no shape")

    monkeypatch.setattr(job, "_record", broken)
    assert job.run(payload, {})["class"] == "record_invalid"
    tables, nodes = cutting.read(warehouse.storage, name)
    (row,) = tables["subgraph_failures"].to_pylist()
    assert (row["graph_hash"], row["class"], nodes.num_rows) == (payload["graph_hash"], "record_invalid", 0)
    assert tables["decompositions"].num_rows == 1, "it is not tried again and again"


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--warehouse", "nowhere"), ("nowhere", "refresh")), (("--scheduler", ""), ("scheduler",))],
)
def test_what_cannot_be_done_is_one_line(passnet: Passnet, decomposed, options, words):
    lake = () if "--warehouse" in options else ("--warehouse", str(decomposed[0]))
    refused(passnet("decompose", *lake, *options), *words)
