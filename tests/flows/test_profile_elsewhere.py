"""Profiles made on a machine without a warehouse: written out once, published once, and nothing foreign gets in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curate.profile.items import Items
from curate.profile.results import Results, blank
from tests.flows.conftest import Passnet, refused
from tests.warehouse import tiny
from warehouse.snapshot import Warehouse

GPU = "Some GPU"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    tiny.publish(tmp_path / "lake")
    return tmp_path / "lake"


def measured(folder: Path, hashes: list[str]) -> Path:
    results = Results(folder)
    for number, subgraph in enumerate(hashes):
        row = {**blank(subgraph, "default"), "device": GPU, "class": "ok", "eager_host_us": 0.1 * number}
        results.append(row)
    results.close()
    return folder


def test_items_go_out_come_back_and_are_published_once(passnet: Passnet, lake: Path, tmp_path: Path):
    items, out = tmp_path / "new" / "items.parquet", tmp_path / "out"
    write = ("profile", "--warehouse", str(lake), "--items", str(items), "--device-name", GPU, "--json")
    code, said, err = passnet(*write, "--limit", "2")
    assert code == 0, err
    total = 2 + json.loads(said)["left"]
    order = Items.read(items).order
    assert len(order) == json.loads(said)["items"] == 2

    measured(out, order)
    receive = ("profile", "--warehouse", str(lake), "--receive", str(out), "--json")
    first = json.loads(passnet(*receive)[1])
    assert (first["received"], first["held"], first["unknown"], first["classes"]) == (2, 0, 0, {"ok": 2})
    again = json.loads(passnet(*receive)[1])
    assert (again["received"], again["held"], again["snapshot"]) == (0, 2, first["snapshot"])

    code, said, _ = passnet(*write)
    assert (json.loads(said)["items"], json.loads(said)["left"]) == (total - 2, 0)
    assert not set(Items.read(items).order) & set(order), "what is profiled is not written again"


def test_a_device_that_has_profiled_everything_leaves_nothing_to_write(passnet: Passnet, lake: Path, tmp_path: Path):
    items = tmp_path / "items.parquet"
    write = ("profile", "--warehouse", str(lake), "--items", str(items), "--device-name", GPU)
    passnet(*write)
    passnet("profile", "--warehouse", str(lake), "--receive", str(measured(tmp_path / "out", Items.read(items).order)))
    refused(passnet(*write), "every subgraph", GPU)


def test_rows_of_unknown_subgraphs_are_counted_and_left_out(passnet: Passnet, lake: Path, tmp_path: Path):
    measured(tmp_path / "out", ["0" * 32])
    found = json.loads(passnet("profile", "--warehouse", str(lake), "--receive", str(tmp_path / "out"), "--json")[1])
    assert (found["received"], found["unknown"]) == (0, 1)
    assert not Warehouse.open(lake).snapshot().rows("profiles")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--receive", "nowhere"), ("nowhere", "curate.profile.run")),
        (("--receive", "."), ("profiles-*.jsonl",)),
        (("--items", "a", "--receive", "b"), ("two steps",)),
        (("--device-name", "x"), ("--items",)),
        (("--items", "/proc/none/items"), ("cannot write",)),
    ],
)
def test_what_cannot_be_done_is_one_line(passnet: Passnet, lake: Path, options, words):
    refused(passnet("profile", "--warehouse", str(lake), *options), *words)
