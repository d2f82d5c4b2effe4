"""A source of instant models, and the job that captures them: refreshes in seconds, without torch.

The name says what a model does: `good-7`, `twin-7` (a graph of its own group of ten), `same-7` (the configuration of
`same-0`), `raise-1`, `exit-1` (ends its worker), `crash-1` (a segmentation fault).

Run as `python -m tests.flows.toy WAREHOUSE [option=value ...]` it does one refresh, the command line's way.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xxhash

from extract.model import Capture, CapturedGraph, Failure, ModelRef, Variant
from extract.sources import registry
from extract.staged import stage
from tests.warehouse.tiny import HOSTILE, mlp

JOB = "tests.flows.toy:run"
#: Seconds that a capture takes; and the file to which each capture adds a line.
PACE, LOG = "PASSNET_TOY_PACE", "PASSNET_TOY_LOG"
#: When set, the warehouse takes nothing.
FULL = "PASSNET_TOY_FULL"


@registry.register("toy")
class ToyZoo:
    name: str

    def list(self) -> Iterator[ModelRef]:
        kinds = {"good": 20, "twin": 20, "same": 3, "raise": 2, "exit": 1, "crash": 1}
        names = [f"{kind}-{i}" for kind, many in kinds.items() for i in range(many)]
        for name in [*names, f"hostile {HOSTILE}"]:
            config = "same" if name.startswith("same") else name
            yield ModelRef("toy", name, f'{{"of":{config!r}}}', name[:4], "testing", "vision", "1")

    def build(self, ref: ModelRef) -> Any:
        raise NotImplementedError("the toy's job does not build")

    inputs = build


def run(given: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """Capture a toy, as `extract.job.run` captures a model."""
    ref, variant = ModelRef(**given["ref"]), Variant.parse(given["variant"])
    kind, _, number = ref.name.partition("-")
    if FULL in os.environ:
        return {"refused": f"the disk is full: {os.environ[FULL]}"}
    time.sleep(float(os.environ.get(PACE, "0")))
    if kind == "exit":
        sys.exit(3)
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    failure, widths = None, [8 + len(ref.name), 1000]
    if kind == "raise":
        failure, widths = Failure("forward_error", "trace", "ValueError", f"{ref.name} raises", "toy.py:1"), []
    if kind == "twin":
        widths = [100 + int(number) % 10, 1000]
    graphs = []
    for index, width in enumerate(widths):
        record = mlp(width)
        name = xxhash.xxh3_128_hexdigest(repr(record).encode())
        graphs.append(CapturedGraph(index, record, name, name, name, name))
    found = Capture(ref, variant, "empty", tuple(graphs), (), failure, 10, {}, 1.0)
    summary = stage(found, given["warehouse"], datetime.now(UTC), 0.01)
    if LOG in os.environ:
        with open(os.environ[LOG], "a") as log:
            log.write(f"{summary['capture_id']}\n")
    return summary


def published(root: Path) -> dict[str, bytes]:
    """Every byte that a refresh publishes, clock readings (`timings`) aside; by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("data", "manifests")
        for path in (root / folder).rglob("*")
        if path.is_file() and "timings" not in path.parts and not path.name.startswith(".tmp-")
    }


def request(warehouse: Path | str, **more: Any) -> Any:
    from flows.refresh import Request

    given = {"sources": ("toy",), "workers": 2, "job": JOB, "preload": (), "warehouse": str(warehouse), **more}
    return Request(**given)


def main(words: Iterable[str]) -> None:
    import json

    from flows.cli import guarded
    from flows.progress import Display
    from flows.refresh import refresh

    warehouse, *options = words
    more: dict[str, Any] = dict(option.split("=", 1) for option in options)
    if "variants" in more:
        more["variants"] = tuple(more["variants"].split(","))

    def work() -> None:
        with Display() as display:
            print(json.dumps(refresh(request(warehouse, **more), display.started).summary()))

    guarded(work)


if __name__ == "__main__":
    # Under its own name, so that the registered class is the one that workers import.
    from tests.flows import toy

    toy.main(sys.argv[1:])
