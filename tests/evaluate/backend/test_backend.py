"""Passes in torch.compile: what they replace, what they leave, and that a model stays what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from evaluate.backend import PassnetBackend, passnet_backend
from evaluate.match import PassError
from evaluate.passes.files import IntakeError
from tests.evaluate.judge.test_judge import CORRECT
from tests.evaluate.passes.making import task


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.left(x) + self.right(x))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x) * 2
        return x.softmax(-1)


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return task(tmp_path / "mine", order=["rule"], rule=CORRECT)


def compiled(backend: PassnetBackend, *sizes: int, model: Any = None) -> None:
    """Compile the model and hold its answers to eager's for inputs of these sizes."""
    torch.manual_seed(0)
    model = (model or Model()).eval()
    fast = torch.compile(model, backend=backend)
    with torch.no_grad():
        for size in sizes:
            x = torch.randn(size, 8)
            torch.testing.assert_close(fast(x), model(x))


@pytest.mark.parametrize("rest", ["eager", "aot_eager", "inductor"])
def test_every_site_of_a_model_is_replaced_and_named_and_the_answer_stays(folder: Path, rest: str):
    backend = passnet_backend(folder, rest=rest)
    compiled(backend, 4)
    (held,) = backend.report
    assert [(s.rule, s.module) for s in held.sites] == [("rule", "blocks.0"), ("rule", "blocks.1")]
    assert held.covered == 4 and held.operators == 11 and not held.dropped
    assert "4 of 11 operators replaced at 2 sites" in str(backend) and "rule in blocks.1" in str(backend)


@pytest.mark.parametrize("rest", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_sizes_may_change_between_calls(folder: Path, rest: str):
    backend = passnet_backend(folder, rest=rest)
    compiled(backend, 4, 6, 9, 31)
    assert len(backend.report) == 2, "once for the first size, once for any"
    assert all(len(held.sites) == 2 for held in backend.report)


def test_what_comes_next_sees_one_graph_whose_replacements_are_single_operators(folder: Path):
    seen: list[list[str]] = []

    def rest(module: torch.fx.GraphModule, inputs: Any) -> Any:
        seen.append([str(n.target) for n in module.graph.nodes if n.op == "call_function"])
        return module

    compiled(passnet_backend(folder, rest=rest), 4)
    assert len(seen) == 1 and sum(name.startswith("passnet.rule_") for name in seen[0]) == 2
    assert not any("relu" in name for name in seen[0])


def test_a_pass_that_is_wrong_here_is_left_out(tmp_path: Path):
    wrong = CORRECT.replace("tl.maximum(x + y, 0, ", "tl.maximum(x + y, 0.25, ")
    folder = task(tmp_path / "mine", order=["bad"], bad=wrong)
    backend = passnet_backend(folder, rest="eager")
    compiled(backend, 4)
    (held,) = backend.report
    assert not held.sites and [d.rule for d in held.dropped] == ["bad", "bad"]
    assert "agrees with eager at level 0 only" in held.dropped[0].why, held.dropped[0]


def test_a_pass_that_fails_here_is_left_out(tmp_path: Path):
    failing = CORRECT.replace("    out = torch", "    assert x.shape[-1] == 9\n    out = torch")
    backend = passnet_backend(task(tmp_path / "mine", order=["bad"], bad=failing), rest="eager")
    compiled(backend, 4)
    assert len(backend.report[0].dropped) == 2 and "AssertionError" in backend.report[0].dropped[0].why


def test_gradients_are_left_alone_and_the_report_says_so(folder: Path):
    backend = passnet_backend(folder, rest="eager")
    model = Model()
    fast = torch.compile(model, backend=backend)
    fast(torch.randn(4, 8)).sum().backward()
    assert model.blocks[0].left.weight.grad is not None
    assert not backend.report[0].sites and "torch.no_grad()" in str(backend)


def test_the_folders_of_a_submission_are_taken_together_or_by_name(tmp_path: Path):
    task(tmp_path / "sub" / "a", order=["first"], first=CORRECT)
    other = CORRECT.replace("torch.relu(x + y)", "torch.relu(x - y)")
    task(tmp_path / "sub" / "b", order=["second"], second=other)
    assert [p.name for p in passnet_backend(tmp_path / "sub", rest="eager").passes] == ["first", "second"]
    assert [p.name for p in passnet_backend(tmp_path / "sub", rest="eager", tasks=["b"]).passes] == ["second"]
    with pytest.raises(PassError, match="no passes for task 'c'"):
        passnet_backend(tmp_path / "sub", tasks=["c"])


def test_a_miss_says_what_is_nearest(tmp_path: Path):
    other = CORRECT.replace("torch.relu(x + y)", "torch.relu(x - y)")
    backend = passnet_backend(task(tmp_path / "mine", order=["rule"], rule=other), rest="eager")
    compiled(backend, 4)
    assert "1 of 2 operators match" in backend.report[0].misses[0]


def test_what_the_screen_refuses_is_not_imported(tmp_path: Path):
    mark = tmp_path / "ran"
    evil = f"import os\nopen({str(mark)!r}, 'w').write('x')\n" + CORRECT
    with pytest.raises(PassError, match="screen refuses"):
        passnet_backend(task(tmp_path / "mine", order=["rule"], rule=evil))
    assert not mark.exists()


def test_a_folder_without_passes_is_one_line(tmp_path: Path):
    with pytest.raises(IntakeError):
        passnet_backend(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(IntakeError, match="no task folder"):
        passnet_backend(tmp_path / "empty")
