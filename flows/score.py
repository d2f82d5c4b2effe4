"""`passnet score`: a submission judged on every task of a PassBench, its scores computed, both published.

choose -> judge (the worker program, on this machine) -> score -> publish into `evaluations` and `scores`. Finished
tasks are durable in a folder beside the snapshots, so whatever is killed, the same command goes on with the same run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")

import pyarrow as pa
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_API_URL, temporary_settings

from evaluate.judge import run as judging
from evaluate.score.scores import configurations, scores
from flows import server
from flows.errors import UserError
from flows.refresh import alone
from warehouse.judged import EVALUATIONS, SCORES
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import LocalStorage

ROOT = Path(__file__).parents[1]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What a scoring run is told. submission: a folder, or baseline:NAME. tasks: ids; empty for all of the bench."""

    submission: str
    bench: Path
    warehouse: str = "lake"
    device: str = "cpu"
    lowering: str = "direct"
    tasks: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Scored:
    """What a run found. rows: of `evaluations`. scores: of `scores`."""

    snapshot: Snapshot
    seconds: float
    rows: list[dict[str, Any]] = field(repr=False)
    scores: list[dict[str, Any]] = field(repr=False)

    def whole(self) -> list[dict[str, Any]]:
        """Scores of all tasks together, each clock and pool."""
        return [s for s in self.scores if s["level"] == "whole"]

    def summary(self) -> dict[str, Any]:
        """The object that `score --json` prints."""
        first = self.rows[0]
        columns = ("task", "subgraph_hash", "case", "verdict", "exploit", "stage", "detail", "correct_t", "miss")
        timed = ("speedup_host", "speedup_device", "baseline_speedup_host", "baseline_speedup_device")
        figures = ("clock", "pool", "samples", "aggregate", "aggregate_low", "aggregate_high", "gmean", "correct")
        return {
            **{k: first[k] for k in ("submission", "submission_name", "run", "bench", "device", "lowering", "layers")},
            "verdicts": dict(sorted(Counter(str(r["verdict"]) for r in self.rows).items())),
            "scores": [{k: s[k] for k in figures} for s in self.whole()],
            "cases": [{k: r[k] for k in (*columns, *timed)} for r in self.rows],
            "seconds": round(self.seconds, 2),
            "snapshot": self.snapshot.id,
        }


def score(request: Request, progress: Progress) -> Scored:
    """Do what `request` says. Raises UserError or WarehouseError for what a user can mend."""
    clock = time.perf_counter()
    given = judging.Request(
        request.submission, request.bench, Path(), request.device, request.lowering, request.tasks, request.seed
    )
    try:
        bench, tasks, submission = judging.wanted(given)
    except judging.Mistake as error:
        raise UserError(str(error)) from None
    warehouse = Warehouse.open(request.warehouse, create=True)
    name = submission if isinstance(submission, str) else submission.hash
    with alone(warehouse):
        out = _folder(warehouse, [name, bench.content, request.device, request.lowering, *(t.id for t in tasks)])
        progress(f"{len(tasks)} tasks, {sum(len(t.members) for t in tasks)} cases on {request.device}")
        with server.started() as api, temporary_settings({PREFECT_API_URL: api()}):
            snapshot, rows, found = _flow(request, [t.id for t in tasks], warehouse, out, progress)
        shutil.rmtree(out, ignore_errors=True)
    return Scored(snapshot, time.perf_counter() - clock, rows, found)


def _folder(warehouse: Warehouse, about: list[str]) -> Path:
    """Where rows of finished tasks wait: in a local warehouse, else in the user's cache."""
    key = hashlib.blake2b(json.dumps(about).encode(), digest_size=12).hexdigest()
    if isinstance(warehouse.storage, LocalStorage):
        return warehouse.storage.root / "scoring" / key
    return Path.home() / ".cache/passnet/scoring" / key


@flow(name="score", validate_parameters=False)
def _flow(
    request: Request, tasks: list[str], warehouse: Warehouse, out: Path, progress: Progress
) -> tuple[Snapshot, list[dict[str, Any]], list[dict[str, Any]]]:
    rows = _judge_task(request, tasks, out, progress)
    found = [s for c in configurations(str(rows[0]["device"])) for s in scores(rows, c)]
    snapshot = _publish_task(warehouse, rows, found)
    table = [{"verdict": v, "cases": n} for v, n in sorted(Counter(str(r["verdict"]) for r in rows).items())]
    create_table_artifact(table, key="score-verdicts", description=f"Verdicts of {rows[0]['submission_name']}")
    return snapshot, rows, found


@task(name="judge", cache_policy=NO_CACHE, persist_result=False)
def _judge_task(request: Request, tasks: list[str], out: Path, progress: Progress) -> list[dict[str, Any]]:
    _run_program(request, out, progress)
    rows = judging.finished(out, tasks)
    if not rows:
        raise UserError("the judge finished without a row: look at its progress above")
    return rows


@task(name="publish-scores", cache_policy=NO_CACHE, persist_result=False)
def _publish_task(warehouse: Warehouse, rows: list[dict[str, Any]], found: list[dict[str, Any]]) -> Snapshot:
    new = {
        "evaluations": pa.Table.from_pylist(rows, schema=EVALUATIONS.schema),
        "scores": pa.Table.from_pylist(found, schema=SCORES.schema),
    }
    return warehouse.publish(warehouse.latest(), new)


def _run_program(request: Request, out: Path, progress: Progress) -> None:
    words = [request.submission, "--bench", str(request.bench), "--out", str(out), "--device", request.device]
    words += ["--lowering", request.lowering, "--seed", str(request.seed)]
    words += [w for t in request.tasks for w in ("--task", t)]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluate.judge.run", *words],
        env={**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    last = ""
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if last := line.strip() or last:
                progress(last)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if code:
        raise UserError(last or f"the judge ended with exit code {code}")
