"""`passnet report`: pages in a folder, one object for machines, one line for what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.curate.leaderboard.making import HOSTILE, published, run
from tests.flows.conftest import Passnet, refused
from warehouse.snapshot import Warehouse


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    published(tmp_path / "lake", [run("mine", tasks=2), run(HOSTILE, tasks=2, verdicts=["wrong"])])
    return tmp_path


def test_it_says_which_page_to_open(passnet: Passnet, scored: Path):
    code, out, _ = passnet("report", "--out", "pages")
    assert code == 0 and (scored / "pages" / "index.html").is_file()
    assert "2 submissions, first mine (AS 1." in out and out.rstrip().endswith("open pages/index.html")


def test_the_object_for_machines(passnet: Passnet, scored: Path):
    code, out, _ = passnet("report", "--json", "--snapshot", "1")
    found = json.loads(out)
    assert code == 0 and set(found) == {"index", "snapshot", "files", "boards"}
    assert [b["clock"] for b in found["boards"]] == ["host", "device"]
    assert [r["submission_name"] for r in found["boards"][0]["rows"]] == ["mine", HOSTILE]
    assert found["boards"][0]["rows"][1]["verdicts"] == {"clean": 5, "wrong": 1}


def test_a_mistake_is_one_line_and_writes_nothing(passnet: Passnet, scored: Path):
    Warehouse.open(scored / "empty", create=True).publish(None, {})
    refused(passnet("report", "--warehouse", "empty"), "nothing was scored", "passnet score")
    (scored / "full").mkdir()
    (scored / "full" / "letter.txt").write_text("dear")
    refused(passnet("report", "--out", "full"), "no leaderboard", "--out")
    refused(passnet("report", "--out", "full/letter.txt"), "letter.txt")
    assert not (scored / "report").exists()
