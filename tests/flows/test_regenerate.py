"""`passnet regenerate`: the same bytes twice, a bench that is published and judged, and one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curate.profile.items import Items
from evaluate import tasks as bench
from tests.curate.passbench.test_folder import held
from tests.curate.passbench.world import GPU, Region, publish, regions
from tests.flows.conftest import Passnet, refused
from tests.warehouse import tiny
from warehouse.snapshot import Warehouse
from warehouse.sql import connect

#: Frequent ones first: half of all (sequence, template) pairs are the head, the other regions are the tail.
COMMON = Region(("relu", "gelu"), tuple(f"family{i}" for i in range(60)))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    publish(tmp_path / "lake", [*regions(60), COMMON])
    return tmp_path / "lake"


def test_the_same_snapshot_and_seed_give_the_same_bytes(passnet: Passnet, lake: Path, tmp_path: Path):
    for out in ("one", "two"):
        code, said, err = passnet("regenerate", "--tasks", "10", "--subgraphs", "30", "--out", out)
        assert (code, err) == (0, "") and "10 tasks (device 10), 30 subgraphs" in said
    assert held(tmp_path / "one") == held(tmp_path / "two")
    found = json.loads(passnet("regenerate", "--tasks", "10", "--seed", "1", "--json")[1])
    assert found["bench"] != bench.read(tmp_path / "one").version == bench.read(tmp_path / "two").version
    assert found["device"] == GPU and found["eval"]["tasks"] == 10 and found["published"] is None
    assert bench.read(tmp_path / "bench").version == found["bench"], "the default folder is the one that score reads"


def test_a_bench_is_published_once_and_asked_about_in_sql(passnet: Passnet, lake: Path):
    ask = ("regenerate", "--tasks", "10", "--publish", "--json")
    first, again = (json.loads(passnet(*ask)[1]) for _ in range(2))
    assert first["published"] == again["published"] != first["snapshot"]
    assert Warehouse.open(lake).snapshot().sequence == 2
    told = (
        connect(lake)
        .sql("SELECT split, count(*), count(DISTINCT bench) FROM tasks GROUP BY ALL ORDER BY ALL")
        .fetchall()
    )
    assert told[0] == ("eval", 10, 1) and told[1][0] == "train"
    members = (
        connect(lake).sql("SELECT count(*) FROM task_members SEMI JOIN tasks USING (bench, split, task)").fetchall()
    )
    (name,) = connect(lake).sql("SELECT min(task) FROM tasks WHERE split = 'eval'").fetchall()[0]
    shown = connect(lake).execute('SELECT "case", cause FROM task($id)', {"id": name}).fetchall()
    assert shown[0] == ("given", "both") and {case for case, _ in shown[1:]} - {"given"}
    assert members == [(first["eval"]["subgraphs"] + first["train"]["subgraphs"],)]


def test_members_without_figures_are_written_for_a_gpu_machine(passnet: Passnet, tmp_path: Path):
    without = {"float16": None, "bfloat16": None}
    publish(tmp_path / "lake", [*regions(30, by_form=without), Region(("relu", "gelu"), ("x",), None), COMMON])
    code, said, _ = passnet("regenerate", "--items", "new/items.parquet", "--json")
    wanted = Items.read(tmp_path / "new" / "items.parquet")
    assert code == 0 and len(wanted.order) == json.loads(said)["items"] == 60, "two forms of each candidate"
    assert {n.dtype for n in wanted.record(wanted.order[0]).nodes if n.dtype} <= {"float16", "bfloat16"}
    assert not (tmp_path / "bench").exists()
    refused(passnet("regenerate", "--items", "/proc/none/items"), "cannot write", "--items")


def test_too_few_candidates_say_how_many_there_are_and_which_filter_took_the_most(passnet: Passnet, tmp_path: Path):
    spoilt = [Region((a, "tanh", "tanh"), ("spoilt",), {"zero_passes": True}) for a in ("relu", "gelu", "silu", "mish")]
    publish(tmp_path / "lake", [*regions(6), *spoilt, COMMON])
    refused(passnet("regenerate"), "tasks, not 200", "of 11 structures", "trivial_answer took the most, 4", "--tasks")
    assert not (tmp_path / "bench").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--device", "NVIDIA H200"), ("no figures of 'NVIDIA H200'", f"profiled on '{GPU}' (", "--device")),
        (("--select", "luck"), ("--select 'luck'", "mix, device, headroom, host")),
        (("--tasks", "10", "--subgraphs", "9"), ("--subgraphs 9 is less than --tasks 10",)),
        (("--tasks", "0"), ("--tasks", "regenerate --help")),
        (("--snapshot", "7"), ("no snapshot is called '7'",)),
        (("--tasks", "5", "--out", "lake"), ("it holds", "which is not of a PassBench")),
        (("--warehouse", "nowhere"), ("there is no warehouse",)),
    ],
)
def test_what_cannot_be_done_is_one_line(passnet: Passnet, lake: Path, options, words):
    refused(passnet("regenerate", *options), *words)


def test_a_snapshot_without_profiles_says_what_to_run(passnet: Passnet, tmp_path: Path):
    publish(tmp_path / "lake", regions(4, figures=None))
    refused(passnet("regenerate"), "no figures of Inductor", "passnet profile")


def test_a_snapshot_without_subgraphs_is_refused(passnet: Passnet, tmp_path: Path):
    tiny.publish(tmp_path / "lake")
    refused(passnet("regenerate"), "holds no subgraphs", "--snapshot")
    Warehouse.open(tmp_path / "empty", create=True).publish(None, {})
    refused(passnet("regenerate", "--warehouse", "empty"), "holds no subgraphs")
