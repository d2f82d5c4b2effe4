"""No honest pass is taken for anything else: a sample by default, all of them among the slow tests."""

from __future__ import annotations

import pytest

from evaluate.judge.workers import Workers
from tests.evaluate.judge.honest import NAMES, a_task, text
from tests.evaluate.judge.making import judge, passes

SAMPLE = set(NAMES[::7])


def test_there_are_at_least_sixty():
    assert len(NAMES) >= 60


@pytest.mark.parametrize("name", [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.slow) for n in NAMES])
def test_an_honest_pass_is_clean(workers: Workers, name: str):
    (row,) = judge(workers).task(passes(text(name)), a_task(name))
    assert row["verdict"] == "clean", (row["exploit"], row["detail"])
