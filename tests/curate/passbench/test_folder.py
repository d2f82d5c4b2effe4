"""The folder of a bench: what the judge reads, the same bytes for the same choice, nothing of others lost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from curate.passbench.choose import choose, records
from curate.passbench.folder import Written, task_names, write
from curate.passbench.rules import Rules
from evaluate import tasks as bench
from tests.curate.passbench.world import GPU, connection, regions
from tests.warehouse.tiny import HOSTILE
from warehouse.storage import WarehouseError

RULES = Rules(GPU, tasks=10, subgraphs=40, head_share=0.0)


def made(out: Path, seed: int = 0, family: str = "", samples: bool = False) -> Written:
    world = [replace(r, families=(f"{family}{r.families[0]}",)) for r in regions(30)]
    connected = connection(world)
    choice = choose(connected, replace(RULES, seed=seed))
    return write(out, choice, records(connected), "5" * 32, samples)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Written]:
    out = tmp_path_factory.mktemp("made") / "bench"
    return out, made(out)


def held(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def test_the_judge_reads_both_splits(folder: tuple[Path, Written]):
    out, written = folder
    read = bench.read(out)
    assert read.version == written.version and len(read.tasks) == 10
    assert sum(len(t.members) for t in read.tasks.values()) == 40
    train = bench.read(out / "train")
    assert train.tasks and not set(train.tasks) & set(read.tasks)


def test_the_same_choice_gives_the_same_bytes_and_another_seed_other_ones(folder: tuple[Path, Written], tmp_path: Path):
    made(tmp_path / "again")
    assert held(tmp_path / "again") == held(folder[0])
    assert made(tmp_path / "other", seed=1).version != folder[1].version


def test_the_manifest_tells_snapshot_rules_filters_and_every_file(folder: tuple[Path, Written]):
    out, written = folder
    told = json.loads((out / "manifest.json").read_text())
    assert (told["bench"], told["snapshot"], told["device"]) == (written.version, "5" * 32, GPU)
    assert told["rules"]["headroom"] == 1.3 and told["filters"][-1]["filter"] == "chosen"
    files = {name: content for name, content in held(out).items() if name != "manifest.json"}
    assert told["files"] == {n: {"bytes": len(c), "sha256": hashlib.sha256(c).hexdigest()} for n, c in files.items()}
    assert {"README.md", "charts/frequency.png", "charts/slowdown.png", "charts/headroom.png", "charts/mix.png"} <= set(
        files
    )


def test_rows_say_why_each_task_was_chosen(folder: tuple[Path, Written]):
    out, written = folder
    tasks = pq.read_table(out / "tasks.parquet").to_pylist()
    members = pq.read_table(out / "members.parquet").to_pylist()
    assert tasks == written.tasks.to_pylist() and members == written.members.to_pylist()
    assert {t["task"] for t in tasks if t["split"] == "eval"} == set(bench.read(out).tasks)
    assert all(t["stratum"] == "device" and t["device_ratio"] == 1.2 and t["headroom"] == 2.0 for t in tasks)
    assert len({(m["split"], m["task"], m["subgraph_hash"]) for m in members}) == len(members)


def test_an_earlier_bench_is_replaced_and_nothing_else(folder: tuple[Path, Written], tmp_path: Path):
    out = tmp_path / "bench"
    made(out, seed=1)
    assert made(out).version == folder[1].version and held(out) == held(folder[0])
    (out / "notes.txt").write_text("mine")
    with pytest.raises(WarehouseError, match="notes.txt"):
        made(out, seed=1)
    assert (out / "notes.txt").read_text() == "mine" and bench.read(out).version == folder[1].version
    assert [p.name for p in tmp_path.iterdir()] == ["bench"], "no draft is left"


def test_samples_are_folders_that_read_back_as_the_members(folder: tuple[Path, Written], tmp_path: Path):
    out = tmp_path / "bench"
    written = made(out, samples=True)
    assert written.samples == {"tasks": 10, "subgraphs": 40, "left_out": 0} and folder[1].samples is None
    for task in bench.read(out).tasks.values():
        place = out / "samples" / task.id
        assert (place / "pass_dir").is_dir()
        listed = (place / "graph_list.txt").read_text().split()
        assert listed == [f"graphs/{m.hash}" for m in task.members]
        assert all((place / path / "model.py").is_file() for path in listed)
        facts = json.loads((place / listed[0] / "graph_net.json").read_text())
        assert (facts["case"], facts["passnet_graph_hash"]) == ("given", task.members[0].hash)
    (place / "pass_dir" / "mine.py").write_text("")
    with pytest.raises(WarehouseError, match="mine.py"):
        made(out)


def test_hostile_names_stay_text(tmp_path: Path):
    made(tmp_path / "bench", family=HOSTILE)
    page = (tmp_path / "bench" / "README.md").read_text()
    assert "DROP TABLE" in page and "\u202e" not in page and "\n../../etc" not in page


def test_a_task_is_named_by_its_operators_and_its_structure():
    ops = ["torch.nn.functional.gelu", "operator.add", "torch.Tensor.__mul__", "../evil\n", "torch.relu"]
    names = task_names([{"structure_hash": "0123456789abcdef", "ops": ops}, {"structure_hash": "f" * 32, "ops": []}])
    assert names == {"0123456789abcdef": "gelu-add-mul-evil-5ops-0123456789", "f" * 32: "task-ffffffffff"}
