"""Pass files become passes, and what goes wrong on the way is one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from evaluate.match import PassError, rewrite
from evaluate.passes import Limits, read_task
from evaluate.passes.load import load
from tests.evaluate.match.making import traced
from tests.evaluate.passes.making import HONEST, task

USUAL = Limits()


def loaded(folder: Path, limits: Limits = USUAL):
    read = read_task(folder, limits)
    return load(read, read.written(folder.parent / f"{folder.name}-copy"))


def test_a_pass_file_becomes_a_pass_and_finds_its_site(tmp_path: Path):
    (rule,) = loaded(task(tmp_path / "t", "AddRelu"))
    assert rule.name == "AddRelu" and rule.arguments[2] == "add_relu" and rule.replacement.__name__ == "fused"
    found = rewrite(traced(lambda x, y: torch.relu(y + x) * 2), rule)
    assert found.sites[0].arguments[2] == "add_relu" and found.coverage.covered == 2


SHARED = (
    HONEST.split("def pattern")[0] + "@torch.fx.wrap" + HONEST.split("@torch.fx.wrap")[1].split("def replacement")[0]
)
SHARED = SHARED.replace('assert route == "add_relu"', "pass").replace("kernel[grid]", "None and kernel[grid]")
RULE = """
import torch
from shared import fused


def pattern(x, y):
    return torch.{op}(x, y)


def replacement_args(x, y):
    return (x, y, "{op}")


def replacement_func():
    return fused
"""


def test_passes_share_one_function_of_a_helper_file_and_tell_it_the_route(tmp_path: Path):
    rules = {"A": RULE.format(op="add"), "B": RULE.format(op="mul"), "shared": SHARED}
    a, b = loaded(task(tmp_path / "t", order=["B", "A"], **rules))
    assert a.replacement is b.replacement and [a.arguments[2], b.arguments[2]] == ["mul", "add"]


def test_more_replacement_functions_than_allowed_are_refused_never_dropped(tmp_path: Path):
    folder = task(tmp_path / "t", "A", "B")
    with pytest.raises(PassError, match="2 replacement functions .* the limit is 1"):
        loaded(folder)
    assert len(loaded(task(tmp_path / "u", "A", "B"), Limits(replacements=2))) == 2


def test_folders_with_files_of_the_same_names_do_not_mix(tmp_path: Path):
    one = loaded(task(tmp_path / "one", order=["A"], A=RULE.format(op="add"), shared=SHARED))
    other = SHARED.replace("return out", "return 'other'")
    two = loaded(task(tmp_path / "two", order=["A"], A=RULE.format(op="add"), shared=other))
    assert one[0].replacement is not two[0].replacement
    assert two[0].replacement(torch.ones(2), torch.ones(2), "add") == "other"
    assert sys.path.count(str(tmp_path / "one-copy")) == 0


@pytest.mark.parametrize(
    "text, said",
    [
        ("raise KeyError('x')", "cannot be imported (KeyError"),
        ("import nowhere_to_be_found", "cannot be imported (ModuleNotFoundError"),
        ("def pattern(x): return x + 1", "there is no replacement_args"),
        (HONEST.replace("torch.relu(x + y)", "torch.nowhere(x)"), "cannot be traced (AttributeError"),
    ],
)
def test_a_file_that_makes_no_pass_is_one_line(tmp_path: Path, text: str, said: str):
    with pytest.raises(PassError) as error:
        loaded(task(tmp_path / "t", order=["A"], A=text))
    assert said in str(error.value) and str(error.value).startswith("A: ") and "\n" not in str(error.value)
