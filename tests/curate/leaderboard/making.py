"""A warehouse of judged runs: two devices, two versions of PassBench, hostile names, every verdict."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluate.score.scores import configurations, scores
from evaluate.verdict import checked
from tests.evaluate.rows import CPU, GPU, clean, failed
from warehouse.judged import EVALUATIONS, SCORES
from warehouse.snapshot import Snapshot, Warehouse

HOSTILE = (
    "</td></tr><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> $x^2$ _\u202e"
)
OTHER = "PassBench-2 ffffabcd"


def published(folder: Path, runs: Sequence[list[dict[str, Any]]]) -> tuple[Warehouse, Snapshot]:
    """A warehouse whose snapshot holds these runs and their scores."""
    rows, found = [], []
    for day, run in enumerate(runs, 1):
        at = datetime(2026, 1, day, 12, tzinfo=UTC)
        rows += [checked({**row, "judged_at": at}) for row in run]
        found += [s for c in configurations(run[0]["device"]) for s in scores(run, c, at)]
    warehouse = Warehouse.open(folder, create=True)
    tables = {
        "evaluations": pa.Table.from_pylist(rows, schema=EVALUATIONS.schema),
        "scores": pa.Table.from_pylist(found, schema=SCORES.schema),
    }
    return warehouse, warehouse.publish(None, tables)


def run(
    name: str, device: str = GPU, speed: float = 1.0, tasks: int = 4, verdicts: Sequence[str] = (), **more: Any
) -> list[dict[str, Any]]:
    """A run of `tasks` tasks of three cases; the first cases get `verdicts`, the others are clean."""
    made = []
    for i in range(tasks):
        for j in range(3):
            about = {
                "submission": name.encode().hex()[:32].ljust(32, "0"),
                "submission_name": name, "run": f"run of {name}"[:20], "task": f"task-{i}",
                "stratum": ("a", "b")[i % 2], "subgraph_hash": f"{i:x}{j:x}" * 16, **more,
            }  # fmt: skip
            at = 3 * i + j
            if at < len(verdicts):
                made.append(failed(verdicts[at], device, **about))
            else:
                made.append(clean(device, -5, speed * (1 + 0.1 * i), speed * (1.2 + 0.2 * j), **about))
    return made


def everything() -> list[list[dict[str, Any]]]:
    """On the GPU five submissions and an old run; others on a CPU, on another PassBench, and of a single task."""
    every = ["wrong", "hack", "no_match", "compile_error", "runtime_error", "timeout", "task_defect", "suspect"]
    return [
        run("mine", speed=0.5, run="an old run of mine"),
        run("baseline:eager", speed=0.9, submission="baseline:eager"),
        run("baseline:inductor", speed=1.4, submission="baseline:inductor"),
        run("mine", speed=2.0, verdicts=["wrong"]),
        run(HOSTILE, speed=3.0, verdicts=[*every, "harness_error"]),
        run("all wrong", speed=1.0, verdicts=["wrong"] * 12),
        run("mine", CPU, run="mine on a cpu"),
        run("only cpu", CPU, verdicts=["no_match"]),
        run("mine", run="on the other bench", bench=OTHER),
        run("mine", tasks=1, run="one task alone"),
    ]
