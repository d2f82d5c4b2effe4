"""`python -m curate.profile.run ITEMS.parquet OUT_DIR`: profile many subgraphs on a bare machine, resumably.

In go node rows of many records, most wanted first; into OUT_DIR come finished rows, each durable at once,
`origin.json` (the device, and its measured copies) and `workers.log` (what workers print). Run it again after any end,
and it goes on. The last line on stdout is a JSON object: counts by class, seconds, subgraphs an hour.

Exit codes: 0 when every item is finished or the minutes are over; 2 for a missing device or unreadable items; 3 for a
device lost on the way; 130 when interrupted. Needs torch, pyarrow, xxhash and the standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

#: Imported once, before the fork, else by every worker at its first compilation. None of them touches the device.
_SHARED = (
    *("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.scheduler", "torch._inductor.codegen.triton"),
    *("torch._inductor.fx_passes.joint_graph", "torch._inductor.fx_passes.post_grad", "torch._inductor.lowering"),
    *("torch._inductor.runtime.triton_heuristics", "torch._refs", "sympy.combinatorics"),
)
_PR_SET_PDEATHSIG = 1
#: Seconds between two lines of progress.
PROGRESS_SECONDS = 10.0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m curate.profile.run", description=(__doc__ or "").splitlines()[0])
    made.add_argument("items", type=Path, help="Parquet file with the columns of `nodes`, and perhaps `priority`")
    made.add_argument("out", type=Path, help="folder for results; an earlier run's is gone on with")
    made.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    made.add_argument("--mode", choices=("default", "reduce-overhead", "max-autotune"), default="default")
    made.add_argument("--compilers", type=int, default=0, help="processes that compile; 0: by cores")
    made.add_argument("--minutes", type=float, default=float("inf"), help="hand out nothing after so many minutes")
    made.add_argument("--limit", type=int, default=None, help="profile at most so many")
    made.add_argument("--seed", type=int, default=0, help="seed of the inputs")
    made.add_argument("--end-with-parent", action="store_true", help="stop when the process that started this one ends")
    made.add_argument("--compile-seconds", type=float, default=120.0, help="deadline of one compilation")
    made.add_argument("--measure-seconds", type=float, default=60.0, help="deadline of one measurement")
    return made


def compilers(asked: int, device: str) -> int:
    """Processes that compile: enough to keep the device busy, with cores left for the one that measures."""
    cores = len(os.sched_getaffinity(0))
    return asked or (max(1, min(10, cores - 4)) if device == "cuda" else 1)


def prepare(scratch: str) -> None:
    """Environment of all workers. Before torch is imported: Inductor reads it once."""
    # Asked the usual way whether there is a GPU, torch starts CUDA's runtime, which no forked worker could use then.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # a worker compiles in itself: no pools inside the pool
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{scratch}/inductor"
    os.environ["TRITON_CACHE_DIR"] = f"{scratch}/triton"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in _SHARED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what the workers share is never looked at again by their collectors


def run(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    scratch = tempfile.mkdtemp(prefix="passnet-profile-")
    if arguments.end_with_parent:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        prepare(scratch)
        return _run(arguments, started)
    except KeyboardInterrupt:
        print("interrupted: finished rows are kept; the same command goes on", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(arguments: argparse.Namespace, started: float) -> int:
    import pyarrow as pa

    from curate.profile.items import Items
    from curate.profile.pool import Limits, Pool
    from curate.profile.results import Results
    from curate.profile.worker import Settings
    from evaluate.measure.device import NoDevice
    from warehouse.graph.record import RecordError

    try:
        items = Items.read(arguments.items)
    except (OSError, pa.ArrowException, RecordError) as error:
        print(f"cannot read {arguments.items}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    results = Results(arguments.out)
    settings = Settings(arguments.device, arguments.mode, arguments.seed, str(arguments.out / "workers.log"))
    limits = Limits(arguments.compile_seconds, arguments.measure_seconds)
    counts: dict[str, int] = {}
    lost = None
    pool = Pool(compilers(arguments.compilers, arguments.device), items, settings, limits)
    try:
        with pool:
            device = str(pool.origin["device"])
            finished = results.finished(device, arguments.mode)
            wanted = [h for h in items.order if h not in finished][: arguments.limit]
            _note_origin(arguments.out, pool.origin, pool.settings.copies)
            begun = spoke = time.monotonic()
            until = started + arguments.minutes * 60
            for row in pool.rows(wanted, until):
                results.append(row)
                counts[row["class"]] = counts.get(row["class"], 0) + 1
                if time.monotonic() - spoke > PROGRESS_SECONDS:
                    spoke = time.monotonic()
                    print(_line(counts, len(wanted), spoke - begun), file=sys.stderr, flush=True)
    except NoDevice as error:
        lost = str(error)
        if not pool.origin:
            print(lost, file=sys.stderr)
            return 2
    finally:
        results.close()
    seconds = time.monotonic() - begun
    done = sum(counts.values())
    summary = {
        "device": device,
        "mode": arguments.mode,
        "wanted": len(wanted),
        "skipped": len(items.order) - len(wanted) if arguments.limit is None else len(finished),
        "profiled": done,
        "classes": dict(sorted(counts.items())),
        "seconds": round(seconds, 2),
        "per_hour": round(done / seconds * 3600) if seconds > 0 else None,
        "lost": lost,
    }
    print(json.dumps(summary))
    if lost is not None:
        print(f"the device was lost ({lost}): finished rows are kept; the same command goes on", file=sys.stderr)
        return 3
    return 0


def _line(counts: dict[str, int], wanted: int, seconds: float) -> str:
    done = sum(counts.values())
    classes = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return f"{done} of {wanted} in {seconds:.0f} s ({done / seconds * 3600:.0f} an hour): {classes}"


def _note_origin(folder: Path, origin: dict[str, Any], copies: Any) -> None:
    noted = {**origin, "copies": [list(point) for point in copies.points] if copies else None}
    temporary = folder / ".origin.json.tmp"
    temporary.write_text(json.dumps(noted, indent=1) + "\n")
    temporary.replace(folder / "origin.json")


if __name__ == "__main__":
    sys.exit(run(parser().parse_args()))
