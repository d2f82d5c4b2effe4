"""A whole submission judged on one device: what a GPU machine runs, by itself or from the flow.

    python -m evaluate.judge.run SUBMISSION --bench DIR --out DIR [--device cuda] [--task ID]… [--lowering direct]

SUBMISSION is a folder of task folders, or baseline:NAME. One file of rows a task is written to --out as it is finished,
so whatever is killed, the same command goes on. Progress is on stderr; stdout gets one JSON object at the end.
Exit: 0 done, 2 a mistake to mend, 3 the device was lost (the same command goes on).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from evaluate.integrity.layers import Layers
from evaluate.judge.judge import Judge, Limits, Run, new_run_id
from evaluate.judge.timed import Timer
from evaluate.judge.workers import CannotStart, Life, Workers
from evaluate.measure.device import Device, NoDevice, open_device
from evaluate.measure.floor import measure_copies
from evaluate.passes.files import IntakeError, Submission, TaskPasses, read_submission
from evaluate.tasks import Bench, BenchError, Task, read
from evaluate.verdict import LOWERINGS
from evaluate.worker.lower import BASELINES

DEVICES = ("cpu", "cuda")


class Mistake(ValueError):
    """What a user can mend. One line."""


@dataclass(frozen=True, slots=True)
class Request:
    """submission: a folder, or baseline:NAME. tasks: ids; empty for all. out: where rows of finished tasks wait."""

    submission: str
    bench: Path
    out: Path
    device: str = "cpu"
    lowering: str = "direct"
    tasks: tuple[str, ...] = ()
    seed: int = 0
    layers: Layers = Layers()
    limits: Limits = Limits()


def wanted(request: Request) -> tuple[Bench, list[Task], Submission | str]:
    """The benchmark, the tasks to judge, and the submission, or a baseline's name. Raises Mistake."""
    if request.lowering not in LOWERINGS:
        raise Mistake(f"--lowering {request.lowering!r}: give one of {', '.join(LOWERINGS)}")
    if request.device not in DEVICES:
        raise Mistake(f"--device {request.device!r}: give one of {', '.join(DEVICES)}")
    try:
        bench = read(request.bench)
    except BenchError as error:
        raise Mistake(str(error)) from None
    if unknown := next((t for t in request.tasks if t not in bench.tasks), None):
        raise Mistake(f"{request.bench} has no task {unknown!r}; it has {', '.join(sorted(bench.tasks)[:5])}, ...")
    chosen = [bench.tasks[t] for t in sorted(request.tasks or bench.tasks)]
    if request.submission.startswith("baseline:"):
        name = request.submission.partition(":")[2]
        if name not in BASELINES:
            raise Mistake(f"no baseline is called {name!r}: {', '.join(f'baseline:{b}' for b in BASELINES)}")
        return bench, chosen, name
    try:
        submission = read_submission(request.submission)
    except IntakeError as error:
        raise Mistake(str(error)) from None
    held = {*submission.tasks, *submission.broken}
    if not held & set(bench.tasks):
        raise Mistake(
            f"{request.submission} has no folder named as a task of {request.bench}: {sorted(bench.tasks)[0]}?"
        )
    return bench, chosen, submission


def judge_all(request: Request, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows of every wanted task; those of tasks finished before come from their files.

    Raises Mistake, NoDevice, CannotStart.
    """
    bench, tasks, submission = wanted(request)
    device = open_device(request.device)
    run = _run(request, bench, submission, device)
    rows: list[dict[str, Any]] = []
    waiting: list[Task] = []
    for task in tasks:
        held = _held(request.out, task)
        rows += held or []
        waiting += [task] if held is None else []
    if held_count := len(tasks) - len(waiting):
        progress(f"{held_count} of {len(tasks)} tasks are judged already")
    if not waiting:
        return rows
    with _judge(request, run, device) as judge:
        for count, task in enumerate(waiting, 1):
            begun = time.monotonic()
            mine = judge.task(_passes(submission, task.id), task, _why(submission, task.id))
            _keep(request.out, task, mine)
            rows += mine
            verdicts = ", ".join(f"{v} {n}" for v, n in sorted(Counter(r["verdict"] for r in mine).items()))
            progress(f"{count} of {len(waiting)} {task.id}: {verdicts} ({time.monotonic() - begun:.1f} s)")
    return rows


def finished(out: Path, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of finished tasks, in the order of `tasks`."""
    return [row for task in tasks for row in _rows(out / f"{task}.rows.json") or []]


def _passes(submission: Submission | str, task: str) -> TaskPasses | str | None:
    return submission if isinstance(submission, str) else submission.tasks.get(task)


def _why(submission: Submission | str, task: str) -> str:
    return "" if isinstance(submission, str) else submission.broken.get(task, "")


@contextlib.contextmanager
def _judge(request: Request, run: Run, device: Device) -> Iterator[Judge]:
    with contextlib.ExitStack() as stack:
        workers = stack.enter_context(Workers(request.device, contained=request.layers.containment))
        timer = None
        if device.is_cuda:
            with device.lock():
                copies = measure_copies(device)

            def renew(name: str) -> Life:
                life = stack.enter_context(workers.life())
                life.ask("load", 120.0, baseline=name)
                return life

            baselines = {name: renew(name) for name in ("eager", "inductor")}
            timer = Timer(device, copies, baselines, renew, request.layers.floor, request.layers.clocks)
        yield Judge(workers, device, run, timer)


def _run(request: Request, bench: Bench, submission: Submission | str, device: Device) -> Run:
    """The run that --out belongs to: the one begun there, if it is of the same things. Raises Mistake."""
    plain = isinstance(submission, str)
    made = Run(
        submission=f"baseline:{submission}" if isinstance(submission, str) else submission.hash,
        name=f"baseline:{submission}" if plain else submission.name,  # type: ignore[union-attr]
        id=new_run_id(),
        bench=bench.version,
        lowering=request.lowering,
        seed=request.seed,
        layers=request.layers,
        limits=request.limits,
    )
    about = {
        "submission": made.submission,
        "bench": bench.content,
        "lowering": made.lowering,
        "device": device.origin.device,
        "layers": made.layers.names(),
    }
    request.out.mkdir(parents=True, exist_ok=True)
    noted = request.out / "run.json"
    if noted.exists():
        with contextlib.suppress(ValueError, KeyError):
            held = json.loads(noted.read_text())
            if held["about"] == about:
                return replace(made, id=str(held["id"]))
        raise Mistake(f"{request.out} holds a run of something else: give another --out, or remove it")
    _write(noted, json.dumps({"id": made.id, "about": about}))
    return made


def _held(out: Path, task: Task) -> list[dict[str, Any]] | None:
    """Rows of a finished task. A file that is none is judged again."""
    rows = _rows(out / f"{task.id}.rows.json")
    return rows if rows is not None and len(rows) == len(task.members) else None


def _rows(path: Path) -> list[dict[str, Any]] | None:
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text())
        for row in rows:
            row["judged_at"] = datetime.datetime.fromisoformat(row["judged_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return rows


def _keep(out: Path, task: Task, rows: list[dict[str, Any]]) -> None:
    _write(out / f"{task.id}.rows.json", json.dumps(rows, default=str))


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def main() -> int:
    """The command of the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m evaluate.judge.run")
    parser.add_argument("submission")
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lowering", default="direct")
    parser.add_argument("--task", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    request = Request(
        given.submission, given.bench, given.out, given.device, given.lowering, tuple(given.task), given.seed
    )
    torch.set_grad_enabled(False)
    begun = time.monotonic()
    try:
        rows = judge_all(request, lambda line: print(line, file=sys.stderr, flush=True))
    except (Mistake, NoDevice) as error:
        print(error, file=sys.stderr)
        return 2
    except (CannotStart, torch.AcceleratorError) as error:
        print(f"{str(error).splitlines()[0]}: finished tasks are kept; the same command goes on", file=sys.stderr)
        return 3
    verdicts = dict(sorted(Counter(r["verdict"] for r in rows).items()))
    print(json.dumps({"rows": len(rows), "verdicts": verdicts, "seconds": round(time.monotonic() - begun, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
