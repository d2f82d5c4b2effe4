"""The judge on a GPU, to be run there: fixtures, honest passes and baselines with times.

    PYTHONPATH=. python benchmarks/judge_gpu.py [--limit N]

Every exploit fixture must not be clean, every honest pass must be; prints one JSON object with what was not as it
should be, the containment that held, and seconds of judging a subgraph beyond warm-ups and trials.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from evaluate.judge.run import Request, judge_all
from evaluate.tasks import Task, write
from tests.evaluate.judge import honest
from tests.exploits.running import FIXTURES, NAMES, about, tasks


def judged(folder: Path, named: dict[str, tuple[Task, str]], submission: str | None = None) -> list[dict[str, Any]]:
    """Rows of a submission made of (task, pass text) by name, or of a baseline."""
    write(folder / "bench", "gpu-check", [Task(name, task.members, task.stratum) for name, (task, _) in named.items()])
    for name, (_, text) in named.items():
        place = folder / "mine" / name
        place.mkdir(parents=True)
        (place / "rule.py").write_text(text)
        (place / "sorted_output_pass_rule_names.json").write_text('["rule"]')
    request = Request(submission or str(folder / "mine"), folder / "bench", folder / "out", device="cuda")
    return judge_all(request, print)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=None)
    limit = parser.parse_args().limit
    exploits = {n: (tasks()[about(n)["task"]], (FIXTURES / n / "rule.py").read_text()) for n in NAMES[:limit]}
    kind = {n.replace("-", "_"): (honest.a_task(n), honest.text(n)) for n in honest.NAMES[:limit]}
    with tempfile.TemporaryDirectory() as name:
        refused = judged(Path(name) / "exploits", exploits)
        clean = judged(Path(name) / "honest", kind)
        base = judged(Path(name) / "inductor", kind, "baseline:inductor")
    found = {
        "exploits_clean": [r["task"] for r in refused if r["verdict"] == "clean" and r["task"] != "control_honest"],
        "honest_not_clean": [(r["task"], r["verdict"], r["detail"]) for r in clean if r["verdict"] != "clean"],
        "baseline_not_clean": [(r["task"], r["detail"]) for r in base if r["verdict"] != "clean"],
        "layers": clean[0]["layers"],
        "speedup_device": {r["task"]: r["speedup_device"] for r in clean},
        "judge_seconds_median": statistics.median(r["judge_seconds"] for r in clean),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
