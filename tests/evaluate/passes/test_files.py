"""Submissions are read as text, and a folder that is none is one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from evaluate.passes import IntakeError, Limits, read_submission, read_task
from tests.evaluate.passes.making import HONEST, task

ORDER = "sorted_output_pass_rule_names.json"


def test_a_submission_is_its_tasks_in_order_with_their_helpers(tmp_path: Path):
    task(tmp_path / "sub/t1", "b", "a", kernels="X = 1\n")
    task(tmp_path / "sub/t2/pass_dir", "only")
    (tmp_path / "sub/.git").mkdir()
    found = read_submission(tmp_path / "sub")
    assert found.name == "sub" and sorted(found.tasks) == ["t1", "t2"] and not found.broken
    assert found.tasks["t1"].rules == ("b", "a") and sorted(found.tasks["t1"].sources) == ["a.py", "b.py", "kernels.py"]
    assert found.tasks["t2"].rules == ("only",)


def test_a_broken_task_costs_itself_alone(tmp_path: Path):
    task(tmp_path / "fine", "a")
    (tmp_path / "empty").mkdir()
    found = read_submission(tmp_path)
    assert list(found.tasks) == ["fine"] and ORDER in found.broken["empty"]


def test_the_hash_changes_with_any_text_and_with_the_order(tmp_path: Path):
    hashes = {
        read_task(task(tmp_path / name / "t", *rules, order=order, **files)).hash
        for name, rules, order, files in [
            ("1", ("a", "b"), None, {}),
            ("2", ("a", "b"), ["b", "a"], {}),
            ("3", ("a", "b"), None, {"h": ""}),
            ("4", ("a",), None, {"b": HONEST + "\n"}),
        ]
    }
    assert len(hashes) == 4
    assert read_task(task(tmp_path / "5/t", "a", "b")).hash in hashes


def test_what_was_read_is_what_is_written(tmp_path: Path):
    read = read_task(task(tmp_path / "t", "a", helper="Y = 2\n"))
    assert read_task(read.written(tmp_path / "copy/t")).hash == read.hash


@pytest.mark.parametrize(
    "order, said",
    [
        ({"a": 1}, "must be a list"),
        ([], "at least one"),
        ([1], "must be a list of names"),
        (["a.py"], "without .py"),
        (["../a"], "without .py"),
        (["a", "a"], "twice"),
        (["a", "ghost"], "there is no ghost.py"),
        (["a"] + [f"p{i}" for i in range(100)], "101 passes; the limit is 100"),
    ],
)
def test_an_order_that_cannot_be_followed_is_refused_never_guessed(tmp_path: Path, order: Any, said: str):
    with pytest.raises(IntakeError, match=said) as error:
        read_task(task(tmp_path / "t", "a", order=order))
    assert "\n" not in str(error.value)


def test_limits_are_configurable(tmp_path: Path):
    folder = task(tmp_path / "t", "a", "b", "c")
    with pytest.raises(IntakeError, match="the limit is 2"):
        read_task(folder, Limits(patterns=2))
    with pytest.raises(IntakeError, match="at most 2"):
        read_task(folder, Limits(files=2))
    with pytest.raises(IntakeError, match="at most 10"):
        read_task(folder, Limits(file_bytes=10))


@pytest.mark.parametrize("name", ["torch", "json", "triton", "evaluate", "numpy"])
def test_a_file_cannot_stand_in_for_a_module(tmp_path: Path, name: str):
    with pytest.raises(IntakeError, match="rename it"):
        read_task(task(tmp_path / "t", "a", **{name: ""}))


def test_text_that_is_none_is_refused(tmp_path: Path):
    for i, (data, said) in enumerate([(b"\xff", "UTF-8"), (b"a = 1\0", "NUL")]):
        folder = task(tmp_path / f"t{i}", "a")
        (folder / "a.py").write_bytes(data)
        with pytest.raises(IntakeError, match=said):
            read_task(folder)
    folder = task(tmp_path / "json", "a")
    (folder / ORDER).write_text("[" * 100_000)
    with pytest.raises(IntakeError, match="is not JSON"):
        read_task(folder)
    folder = task(tmp_path / "dash", "a", **{"two-words": ""})
    with pytest.raises(IntakeError, match="no module name"):
        read_task(folder)


def test_links_pipes_and_folders_are_not_followed(tmp_path: Path):
    secret = tmp_path / "secret.py"
    secret.write_text("KEY = 1\n")
    linked = task(tmp_path / "linked", "a")
    (linked / "b.py").symlink_to(secret)
    with pytest.raises(IntakeError, match="links are not followed"):
        read_task(linked)
    piped = task(tmp_path / "piped", "a")
    os.mkfifo(piped / "b.py")
    with pytest.raises(IntakeError, match="no plain file"):
        read_task(piped)
    folder = tmp_path / "outer"
    folder.mkdir()
    (folder / "t").symlink_to(task(tmp_path / "real", "a"), target_is_directory=True)
    assert "links are not followed" in read_submission(folder).broken["t"]


def test_what_is_no_submission_is_one_line(tmp_path: Path):
    for folder in (tmp_path / "missing", tmp_path, task(tmp_path / "x", "a") / "a.py"):
        with pytest.raises(IntakeError) as error:
            read_submission(folder) if folder != tmp_path else read_submission(tmp_path / "x")
        assert "\n" not in str(error.value)
