"""`passnet score SUBMISSION`: judged, scored, published; begun runs go on; one line for what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluate.judge import run as judging
from evaluate.tasks import write
from tests.evaluate.judge.making import task
from tests.evaluate.judge.test_judge import CORRECT, add_relu
from tests.evaluate.passes.making import task as pass_folder
from tests.flows.conftest import Passnet, refused, shared_server
from warehouse.snapshot import Warehouse


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark of two tasks, a submission with passes for one."""
    monkeypatch.setenv("PREFECT_API_URL", shared_server())
    write(tmp_path / "bench", "Bench", [task(add_relu(), name="a"), task(add_relu(), name="b")])
    pass_folder(tmp_path / "mine" / "a", order=["rule"], rule=CORRECT)
    return tmp_path


def words(place: Path, *more: str) -> list[str]:
    lake = str(place / "lake")
    return [
        "score",
        str(place / "mine"),
        "--bench",
        str(place / "bench"),
        "--device",
        "cpu",
        "--warehouse",
        lake,
        *more,
    ]


def test_verdicts_and_scores_are_published(passnet: Passnet, place: Path):
    code, out, _ = passnet(*words(place, "--json"))
    assert code == 0
    found = json.loads(out)
    assert found["verdicts"] == {"clean": 1, "no_match": 1}
    assert {s["clock"] for s in found["scores"]} == {"none"} and 0 < found["scores"][0]["aggregate"] < 1
    warehouse = Warehouse.open(place / "lake")
    rows = warehouse.read(warehouse.snapshot(), "evaluations").to_pylist()
    assert [(r["task"], r["verdict"], r["device"]) for r in rows] == [("a", "clean", "cpu"), ("b", "no_match", "cpu")]
    assert warehouse.read(warehouse.snapshot(), "scores").num_rows > 0
    assert not list((place / "lake" / "scoring").iterdir())


def test_finished_tasks_are_not_judged_again(place: Path, monkeypatch: pytest.MonkeyPatch):
    request = judging.Request(str(place / "mine"), place / "bench", place / "out", tasks=("b",))
    (row,) = judging.judge_all(request, lambda line: None)
    monkeypatch.setattr(judging, "Workers", None)
    assert judging.judge_all(request, lambda line: None) == [row]


def test_a_folder_of_another_run_is_refused(place: Path):
    request = judging.Request(str(place / "mine"), place / "bench", place / "out", tasks=("b",))
    judging.judge_all(request, lambda line: None)
    pass_folder(place / "mine" / "b", order=["rule"], rule=CORRECT + "# changed")
    with pytest.raises(judging.Mistake, match="holds a run of something else"):
        judging.judge_all(request, lambda line: None)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--task", "zzz"), "no task 'zzz'"),
        (("--lowering", "sideways"), "give one of direct, dynamo, inductor"),
        (("--device", "tpu"), "give one of cpu, cuda"),
        (("--bench", "nowhere"), "holds no tasks.json"),
    ],
)
def test_a_mistake_is_one_line(passnet: Passnet, place: Path, more: tuple[str, ...], line: str):
    refused(passnet(*words(place, *more)), line)


@pytest.mark.parametrize("name", ["nowhere", "baseline:none"])
def test_a_submission_that_is_none_is_one_line(passnet: Passnet, place: Path, name: str):
    given: list[Any] = words(place)
    given[1] = name
    refused(passnet(*given), name.removeprefix("baseline:"))
