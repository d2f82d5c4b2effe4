"""Published GraphNet samples: how many are imported, how fast, what they hold, and how many run on their value recipes.

    python benchmarks/graphnet_import.py DIR [--warehouse LAKE] [--run COUNT] [--seed S] [--workers N]

DIR holds the samples (`samples/` of a checkout of PaddlePaddle/GraphNet). A fresh warehouse is filled by `passnet
import`, so the figures are the command's own, start-up included; an existing LAKE is not filled again. Then COUNT
random imported graphs are moved to the CPU and run once on values drawn from their recipes, each in an isolated
worker with a deadline and a memory cap (`--run -1`: all of them).
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from extract.workers import Job, Limits, WorkerPool
from warehouse.sql import connect

BIN = Path(sys.executable).parent
DEADLINE_S, MEMORY_MB = 120.0, 8000


def run_graph(given: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """The job of a worker: run one stored graph. `ran`, `finite`: whether it ended, and gave only finite numbers."""
    import torch

    from warehouse.graph.devices import on_device
    from warehouse.graph.inputs import draw
    from warehouse.graph.to_fx import to_graph_module
    from warehouse.rows import records_from_table

    torch.set_num_threads(1)
    asked = "SELECT * FROM nodes WHERE graph_hash = $hash"
    table = connect(given["warehouse"]).sql(asked, params={"hash": given["hash"]}).to_arrow_table()
    record = on_device(records_from_table(table)[given["hash"]], "cpu")
    try:
        with torch.no_grad():
            torch.manual_seed(0)
            outputs = to_graph_module(record)(*draw(record, seed=given["seed"]))
    except Exception as error:  # the figure counts these
        return {"ran": False, "why": f"{type(error).__name__}: {str(error).splitlines()[0][:140]}"}
    tensors = [x for x in torch.utils._pytree.tree_leaves(outputs) if isinstance(x, torch.Tensor)]
    return {"ran": True, "finite": all(bool(torch.isfinite(x).all()) for x in tensors)}


def run_graphs(lake: str, count: int, seed: int, workers: int) -> dict[str, Any]:
    query = (
        "SELECT graph_hash, min(name) FROM graphs JOIN occurrences USING (graph_hash) JOIN captures c "
        "ON c.capture_id = occurrences.capture_id WHERE source = 'graphnet' GROUP BY 1 ORDER BY 1"
    )
    names = dict(connect(lake).execute(query).fetchall())
    chosen = sorted(names) if count < 0 else random.Random(seed).sample(sorted(names), min(count, len(names)))
    jobs = [Job(h, {"warehouse": lake, "hash": h, "seed": seed}) for h in chosen]
    limits = Limits(deadline_s=DEADLINE_S, memory_mb=MEMORY_MB, recycle_after=20)
    ran, finite = 0, 0
    why: Counter[str] = Counter()
    with WorkerPool(workers, limits, "benchmarks.graphnet_import:run_graph", ("torch", "duckdb")) as pool:
        for result in pool.map_unordered(jobs):
            found = result.value or {"ran": False, "why": result.failure.kind if result.failure else "lost"}
            ran += found["ran"]
            finite += found.get("finite", False)
            if not found["ran"]:
                why[found["why"]] += 1
                print(f"  {names[result.id]}: {found['why']}", file=sys.stderr)
    return {"run": len(jobs), "ran": ran, "share_ran": round(ran / len(jobs), 4), "finite": finite, "why": dict(why)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--warehouse", default=None)
    parser.add_argument("--run", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lake = options.warehouse or f"{scratch}/lake"
        if not (Path(lake) / "manifests").is_dir():
            command = [str(BIN / "python"), "-m", "flows.cli", "import", "graphnet", options.folder]
            command += ["--warehouse", lake, "--workers", str(options.workers), "--json"]
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            found["peak_mb_of_largest_process"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
            print(json.dumps(found))
        if options.run:
            print(json.dumps(run_graphs(lake, options.run, options.seed, options.workers)))


if __name__ == "__main__":
    main()
