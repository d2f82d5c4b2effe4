"""The folder of a benchmark: what is written is read back, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from evaluate.tasks import BenchError, read, write
from tests.evaluate.judge.making import record, task


def made(folder: Path):
    r = record(lambda x: torch.relu(x) + 1, torch.randn(4, 4))
    return write(folder, "Bench-1", [task(r, name="b"), task(r, name="a")])


def test_what_is_written_is_read_back(tmp_path: Path):
    written = made(tmp_path / "one")
    found = read(tmp_path / "one")
    assert found == written and sorted(found.tasks) == ["a", "b"]
    assert made(tmp_path / "two").content == written.content


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda f: (f / "tasks.json").unlink(), "missing"),
        (lambda f: (f / "tasks.json").write_text("{"), "damaged"),
        (lambda f: (f / "nodes.parquet").write_bytes(b"PAR1"), "damaged"),
        (lambda f: (f / "nodes.parquet").unlink(), "damaged"),
        (lambda f: edited(f, lambda h: h.update(format=99)), "version"),
        (lambda f: edited(f, lambda h: h.pop("name")), "damaged"),
        (lambda f: edited(f, lambda h: h["tasks"].pop()), "damaged"),
        (lambda f: edited(f, lambda h: h["tasks"][0].update(stratum="other")), "damaged"),
        (lambda f: edited(f, lambda h: h["tasks"][0]["members"][0].update(hash="f" * 32)), "damaged"),
        (lambda f: edited(f, lambda h: h["tasks"][0].update(members=[])), "damaged"),
    ],
)
def test_damage_and_other_versions_are_named(tmp_path: Path, damage, kind: str):
    made(tmp_path)
    damage(tmp_path)
    with pytest.raises(BenchError) as found:
        read(tmp_path)
    assert found.value.kind == kind


def edited(folder: Path, change) -> None:
    held = json.loads((folder / "tasks.json").read_text())
    change(held)
    (folder / "tasks.json").write_text(json.dumps(held))
