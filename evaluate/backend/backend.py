"""A backend of torch.compile that puts a folder's passes into any model and hands the rest on to another backend.

In goes a folder of passes, out comes a callable for `torch.compile(model, backend=...)`. Each graph that Dynamo
captures is rewritten by the matcher; each site is run once against what it replaces, on the values at hand, and left as
it was where the two disagree; the rest goes to Inductor, which sees a replacement as one operator of unknown insides
(evaluate/backend/opaque.py). `report` says what was replaced.

The passes run in the caller's own process with the caller's rights. The screen refuses what no pass needs, and is no
sandbox: load only passes of somebody you trust, as you would with any Python file.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx

from evaluate.backend.opaque import as_operators, unfit
from evaluate.match import Pass, PassError, Rewritten, Site, check_sites, rewrite
from evaluate.passes.files import ORDER, Limits, TaskPasses, read_submission, read_task
from evaluate.passes.load import load
from evaluate.passes.screen import screen

#: Level of docs/scores.md at which a site must agree with eager: both round, and an order of summation is no fault.
CHECK_AT = -3
_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Replaced:
    """One site. module: path of the innermost module that all its calls came from. nodes: those replaced."""

    rule: str
    module: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A site that fits and was left as it was, and why."""

    rule: str
    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class GraphReport:
    """What became of one graph. operators: calls in it. misses: why passes that are nowhere in it do not fit."""

    operators: int
    covered: int
    sites: tuple[Replaced, ...]
    dropped: tuple[Dropped, ...]
    misses: tuple[str, ...]
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.operators} operators, left as they are: {self.skipped}"
        lines = [f"{self.covered} of {self.operators} operators replaced at {len(self.sites)} sites"]
        lines += [f"  {s.rule} in {s.module or 'the model'}: {', '.join(s.nodes)}" for s in self.sites]
        lines += [f"  {d.rule} not at {', '.join(d.nodes)}: {d.why}" for d in self.dropped]
        return "\n".join([*lines, *(f"  {miss}" for miss in self.misses)])


@dataclass(slots=True)
class PassnetBackend:
    """A backend for torch.compile. report: of each graph compiled so far, in order."""

    passes: list[Pass]
    rest: Callable[..., Any]
    opaque: bool
    check_at: int | None
    report: list[GraphReport] = field(default_factory=list)

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        ops = sum(n.op in ("call_function", "call_method") for n in module.graph.nodes)
        if torch.is_grad_enabled() and any(isinstance(v, torch.Tensor) and v.requires_grad for v in inputs):
            why = "a gradient may be asked for, and passes have none; call the model under torch.no_grad()"
            return self._left(ops, why)(module, inputs)
        try:
            made, dropped = self._agreed(module, inputs)
        except Exception as error:  # the graph by itself: an operator that may not run twice, memory that runs out
            why = f"its sites could not be checked ({type(error).__name__}: {error})"
            return self._left(ops, " ".join(why.split())[:300])(module, inputs)
        sites = tuple(Replaced(s.rule, _module(module, s), s.covered) for s in made.sites)
        misses = tuple(map(str, made.misses))
        self.report.append(GraphReport(ops, made.coverage.covered, sites, tuple(dropped), misses))
        if not sites:
            return self.rest(module, inputs)
        made.graph_module.meta.update(module.meta)
        if self.opaque:
            as_operators(module, made)
        return self.rest(made.graph_module, inputs)

    def _left(self, ops: int, why: str) -> Callable[..., Any]:
        self.report.append(GraphReport(ops, 0, (), (), (), why))
        return self.rest

    def __str__(self) -> str:
        return "\n".join(f"graph {i}: {held}" for i, held in enumerate(self.report))

    def _agreed(self, module: fx.GraphModule, inputs: Sequence[Any]) -> tuple[Rewritten, list[Dropped]]:
        """The rewriting in which every site does what it replaces, and the sites that were given up for it."""
        dropped: list[Dropped] = []
        while True:
            made = rewrite(module, self.passes, {(d.rule, d.nodes) for d in dropped})
            wrong = self._wrong(module, made, inputs)
            if not wrong:
                return made, dropped
            dropped += wrong

    def _wrong(self, module: fx.GraphModule, made: Rewritten, inputs: Sequence[Any]) -> list[Dropped]:
        if self.opaque:
            odd = [Dropped(s.rule, s.covered, why) for s in made.sites if (why := unfit(module, s))]
            if odd:
                return odd
        if self.check_at is None or not made.sites:
            return []
        with torch.random.fork_rng(devices=_devices(inputs)):
            checks = check_sites(module, made, [_hint(v) for v in inputs])
        wrong = [c for c in checks if not c.correct_at(self.check_at)]
        return [Dropped(c.site.rule, c.site.covered, c.problem or _apart(c.agreement)) for c in wrong]


def passnet_backend(
    pass_dir: Path | str,
    rest: str | Callable[..., Any] = "inductor",
    tasks: Sequence[str] | None = None,
    check_at: int | None = CHECK_AT,
    limits: Limits = _LIMITS,
) -> PassnetBackend:
    """A backend for `torch.compile(model, backend=passnet_backend("pass_dir"))`.

    pass_dir   the passes of one task, or a submission: a folder of such folders, taken in the order of their names
    rest       the backend that gets the rewritten graphs: a name that torch knows (`inductor`, `eager`), or a callable
    tasks      of a submission: only the passes of these tasks
    check_at   tolerance level at which a site must agree with what it replaces, on the inputs that are compiled for;
               None does not check

    Raises IntakeError for a folder that holds no passes, PassError for passes that the screen refuses or that do not
    load. The passes run in this process: see this file's first lines.
    """
    loaded: list[Pass] = []
    for held in _read(Path(pass_dir), tasks, limits):
        if findings := screen(held):
            raise PassError(f"{held.task}: {findings[0]}; the screen refuses such passes")
        loaded += load(held, _kept(held))
    known = rest if callable(rest) else torch._dynamo.lookup_backend(rest)
    return PassnetBackend(loaded, known, rest != "eager", check_at)


def _read(folder: Path, tasks: Sequence[str] | None, limits: Limits) -> list[TaskPasses]:
    single = (folder / ORDER).exists() or (folder / "pass_dir").is_dir()
    if single:
        if tasks is not None:
            raise PassError(f"{folder} holds the passes of one task: tasks= chooses from a folder of such folders")
        return [read_task(folder, limits)]
    submission = read_submission(folder, limits)
    if broken := next(iter(submission.broken.values()), None):
        raise PassError(broken)
    wanted = sorted(submission.tasks) if tasks is None else list(tasks)
    if unknown := next((t for t in wanted if t not in submission.tasks), None):
        raise PassError(f"{folder} holds no passes for task {unknown!r}")
    return [submission.tasks[t] for t in wanted]


def _kept(held: TaskPasses) -> Path:
    """A copy of exactly what was screened, kept until the process ends: Triton reads kernels from it."""
    root = Path(tempfile.mkdtemp(prefix="passnet-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return held.written(root / "pass_dir")


def _module(module: fx.GraphModule, site: Site) -> str:
    """The path that all of the site's calls have in common, `blocks.0.norm1`; empty for the model itself."""
    by_name = {n.name: n for n in module.graph.nodes}
    paths = [[p for p, _ in (by_name[name].meta.get("nn_module_stack") or {}).values()] for name in site.covered]
    common = [level[0] for level in zip(*paths, strict=False) if len(set(level)) == 1]
    words = common[-1].removeprefix("L['self']").removeprefix("L['fn']") if common else ""
    return words.replace("_modules['", "").replace("']", "").replace("['", ".").lstrip(".")


def _hint(value: Any) -> Any:
    """A symbolic size as the number that is compiled for, without a guard on it."""
    return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat)) else value


def _devices(inputs: Sequence[Any]) -> list[int]:
    return sorted({v.device.index or 0 for v in inputs if isinstance(v, torch.Tensor) and v.device.type == "cuda"})


def _apart(found: Any) -> str:
    return "no agreement" if found is None else f"it agrees with eager at level {found.t} only"
