"""Seconds to capture a model without weights, against Dynamo on real weights with dynamic=True: the same 20 models.

    python benchmarks/capture_time.py [--models 20] [--seed 0]

Each measurement runs in a child forked from a warm parent, one thread, both ways in turn (order alternating), so that
neither profits from the other's caches. "Ours" is everything a refresh does for a model: build, trace, record, rebuild,
compare, hash. "Real" builds with random weights and compiles with a backend that only keeps the graph.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import statistics
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a parent that has touched a device cannot be forked; neither way needs one

import timm
import torch
import torch._dynamo

from extract.capture import capture
from extract.model import Variant
from extract.sources import registry


def ours(name: str) -> float:
    source = registry.get("timm")
    start = time.perf_counter()
    result = capture(source, source.ref(name), Variant())  # type: ignore[attr-defined]
    spent = time.perf_counter() - start
    if result.failure is not None:
        raise RuntimeError(f"{name}: {result.failure}")
    return spent


def real(name: str) -> float:
    kept = []

    def keep(module, example_inputs):
        kept.append(module)
        return module.forward

    start = time.perf_counter()
    model = timm.create_model(name, pretrained=False).eval()
    image = torch.randn(1, *model.default_cfg["input_size"])
    with torch.no_grad():
        torch.compile(model, backend=keep, dynamic=True)(image)
    spent = time.perf_counter() - start
    if not kept:
        raise RuntimeError(f"{name}: no graph")
    return spent


def _child(way, name, pipe):
    torch.set_num_threads(1)
    pipe.send(way(name))


def measured(way, name: str) -> float:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(way, name, sender))
    child.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        raise SystemExit(f"{name}: the {way.__name__} measurement failed") from None
    finally:
        child.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    registry.get("timm")
    names = random.Random(options.seed).sample(timm.list_models(), options.models)
    for way in (ours, real):  # first use of Dynamo costs seconds, whichever way it is used
        way(next(name for name in ("resnet18", "resnet34") if name not in names))
    ratios = []
    print(f"{'model':44} {'ours s':>8} {'real s':>8} {'ratio':>6}")
    for i, name in enumerate(names):
        ways = (ours, real) if i % 2 == 0 else (real, ours)
        seconds = {way: measured(way, name) for way in ways}
        ratios.append(seconds[real] / seconds[ours])
        print(f"{name:44} {seconds[ours]:8.2f} {seconds[real]:8.2f} {ratios[-1]:6.2f}", flush=True)
    summary = {
        "models": len(names),
        "median_ratio": round(statistics.median(ratios), 2),
        "least": round(min(ratios), 2),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
