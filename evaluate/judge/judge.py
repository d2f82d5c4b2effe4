"""The judge: one submission's passes for one task in, one row of `evaluations` for each of its subgraphs out.

One worker lives for one (submission, task). For each subgraph: screen, match, then calls whose inputs follow from a
nonce that is drawn when the call is made, each answer compared as bytes with eager and with float64, then calls that a
submission cannot tell from timed ones and of which random ones are checked, times on a GPU, and a last check. The first
finding ends a case; what is not the submission's doing is a `task_defect` or `harness_error`.
"""

from __future__ import annotations

import datetime
import secrets
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from evaluate.integrity import diagnose
from evaluate.integrity.layers import Layers
from evaluate.integrity.naming import named
from evaluate.judge.calls import Calls, Decided, classed
from evaluate.judge.case import DISTRIBUTIONS, Case, Defect
from evaluate.judge.timed import Timer
from evaluate.judge.workers import Ended, Life, Workers
from evaluate.measure.device import Device
from evaluate.passes.files import TaskPasses
from evaluate.passes.screen import screen
from evaluate.tasks import Member, Task
from evaluate.verdict import Verdict, checked
from warehouse.graph.record import RecordError

#: Findings of the screen that are errors and no exploits.
MISTAKES = frozenset({"syntax", "missing_function"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: load for importing a task's files, call for one call (compiling included in the first)."""

    load_s: float = 60.0
    call_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """What all rows of a run share. passes: a task's, or the name of a baseline."""

    submission: str
    name: str
    id: str
    bench: str
    lowering: str = "direct"
    seed: int = 0
    layers: Layers = Layers()
    limits: Limits = Limits()


@dataclass(slots=True)
class Judge:
    """workers: the warm parent. device: opened in this process. timer: None makes no claim about time."""

    workers: Workers
    device: Device
    run: Run
    timer: Timer | None = None
    _contained: list[str] = field(default_factory=list)

    def task(self, passes: TaskPasses | str | None, task: Task, why: str = "") -> list[dict[str, Any]]:
        """A row for every subgraph. passes: None when the submission has none for this task, or none readable (`why`).

        Raises evaluate.judge.workers.CannotStart when workers do not start.
        """
        if passes is None:
            absent = Decided(Verdict.NO_MATCH, "match", why or "the submission has no passes for this task")
            return [self._row(task, m, absent, {}, 0.0) for m in task.members]
        if isinstance(passes, TaskPasses) and (found := self._screened(passes)) is not None:
            return [self._row(task, m, found, {}, 0.0) for m in task.members]
        rows: list[dict[str, Any]] = []
        while len(rows) < len(task.members):  # a worker that ends costs the subgraph at hand, the next gets another
            with self.workers.life() as life:
                rows += self._life(life, passes, task, task.members[len(rows) :])
        return rows

    def _screened(self, passes: TaskPasses) -> Decided | None:
        findings = screen(passes)
        broken = next((f for f in findings if f.exploit in MISTAKES), None)
        if broken is not None:
            return Decided(Verdict.COMPILE_ERROR, "screen", str(broken))
        if findings and self.run.layers.screen:
            exploit, finding = named(findings, passes)
            return Decided(Verdict.HACK, "screen", str(finding), exploit)
        return None

    def _life(
        self, life: Life, passes: TaskPasses | str, task: Task, members: tuple[Member, ...]
    ) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        self._contained = life.layers
        try:
            self._load(life, passes)
        except Decided as found:
            return [self._row(task, m, found, {}, 0.0) for m in members]
        for member in members:
            started, facts = time.monotonic(), dict[str, Any]()
            alive = True
            try:
                self._case(life, member, facts, baseline=isinstance(passes, str))
                found = Decided(Verdict.CLEAN, "", "")
            except Decided as decided:
                found, alive = decided, not decided.final
            except (Defect, RecordError) as error:
                found = Decided(Verdict.TASK_DEFECT, "check", str(error))
            except torch.OutOfMemoryError as error:
                found = Decided(Verdict.HARNESS_ERROR, "check", str(error).splitlines()[0])
            except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
                # Most likely an answer that no worker of ours gives. Not left out of scores, or forging would pay.
                where = f"{type(error).__name__}: {error}; the answers of the worker make no sense"
                found, alive = Decided(Verdict.SUSPECT, "worker", where, "forged_result", final=True), False
            rows.append(self._row(task, member, found, facts, time.monotonic() - started))
            if not alive:
                break
        return rows

    def _load(self, life: Life, passes: TaskPasses | str) -> None:
        message: dict[str, Any] = {"baseline": passes}
        if isinstance(passes, TaskPasses):
            message = {
                "task": passes.task,
                "rules": list(passes.rules),
                "sources": passes.sources,
                "limits": asdict(passes.limits),
            }
        answer = self._asked(life, "load", "load", self.run.limits.load_s, **message)
        if "failed" in answer:
            raise Decided(Verdict.COMPILE_ERROR, "load", str(answer["failed"])[:300])

    def _case(self, life: Life, member: Member, facts: dict[str, Any], baseline: bool) -> None:
        try:
            case = Case(member.record, self.device.kind)
        except (Defect, RecordError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # torch refuses the graph's constants, say
            raise Defect(f"{type(error).__name__}: {error}") from error
        layers = self.run.layers
        answer = self._asked(
            life, "match", "graph", self.run.limits.call_s, record=case.as_json(), lowering=self.run.lowering
        )
        if "failed" in answer:
            raise Decided(Verdict.COMPILE_ERROR, "match", str(answer["failed"])[:300])
        if not baseline:
            _matched(answer, facts, layers)
        calls = Calls(life, case, layers, self.run.limits.call_s, baseline)
        try:
            self._calls(calls, case, baseline)
            if self.timer is not None:
                facts.update(self.timer.columns(calls, member))
                calls.checked("recheck", "recipe")
        finally:
            facts.update(calls.columns())
        calls.settle()

    def _calls(self, calls: Calls, case: Case, baseline: bool) -> None:
        """Correctness, before and during what looks like timing."""
        layers = self.run.layers
        calls.checked("check", "recipe", watched=True)
        if layers.fresh:
            calls.checked("check", "recipe")
            calls.checked("check", "recipe", refill=True)
        if layers.distributions and any(case.varied):
            for name in DISTRIBUTIONS:
                calls.checked("check", name)
        if layers.usage and not baseline:
            calls.ghost()
        if layers.timed:
            calls.burst()

    def _asked(self, life: Life, stage: str, verb: str, seconds: float, **message: Any) -> dict[str, Any]:
        try:
            answer = life.ask(verb, seconds, **message)
        except Ended as end:
            raise classed(end, stage) from end
        if (found := diagnose.of_notes(answer, self.run.layers)) is not None:
            raise Decided(Verdict.HACK, stage, found[1], found[0], final=True)
        return answer

    def _row(self, task: Task, member: Member, found: Decided, facts: dict[str, Any], seconds: float) -> dict[str, Any]:
        run, origin = self.run, self.device.origin
        row = {
            "submission": run.submission, "submission_name": run.name, "run": run.id, "bench": run.bench,
            "device": origin.device, "lowering": run.lowering, "task": task.id, "stratum": task.stratum,
            "subgraph_hash": member.hash, "case": member.case, "dtype": member.dtype,
            "layers": [*(f"contained: {name}" for name in self._contained), *run.layers.names()],
            "driver": origin.driver, "cuda": origin.cuda, "torch": origin.torch, "triton": origin.triton,
            "python": origin.python, "host": origin.host, "seed": run.seed, "judge_seconds": round(seconds, 4),
            "judged_at": datetime.datetime.now(datetime.UTC),
        }  # fmt: skip
        return checked({**row, **facts, **found.columns(facts)})


def _matched(answer: dict[str, Any], facts: dict[str, Any], layers: Layers) -> None:
    sites, coverage = answer.get("sites"), answer.get("coverage")
    counted = isinstance(coverage, list) and len(coverage) == 3
    counted = counted and all(type(v) is int and 0 <= v < 10**6 for v in coverage)  # type: ignore[union-attr]
    if not isinstance(sites, list) or not counted or len(sites) > coverage[0]:
        raise Decided(Verdict.HACK, "match", "an answer without sites", "forged_result", final=True)
    facts["rules"] = list(dict.fromkeys(str(s.get("rule"))[:120] for s in sites))
    facts["sites"], facts["ops"], facts["ops_covered"] = len(sites), int(coverage[0]), int(coverage[1])
    trivial = answer.get("trivial")
    if not sites or (trivial and layers.match):
        misses = answer.get("misses") or []
        facts["miss"] = str(misses[0])[:500] if misses else None
        raise Decided(Verdict.NO_MATCH, "match", str(trivial or "no site")[:300])


def new_run_id() -> str:
    """Time and a random part: runs sort by when they began."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
