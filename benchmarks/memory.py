"""Peak resident memory of a capture worker, a seven-billion-parameter configuration at full depth included.

    python benchmarks/memory.py

The worker is a real one of the pool, and its peak is what the kernel counted while it worked on each model.
"""

from __future__ import annotations

import json
import tempfile

from extract.model import Variant
from extract.sources import registry
from extract.staged import payload
from extract.workers import Job, Limits, WorkerPool
from warehouse.snapshot import Warehouse

MODELS = (
    "timm:vit_giant_patch14_dinov2",
    "timm:eva02_enormous_patch14_clip_224",
    "timm:convnext_xxlarge",
    "transformers:mixtral/MixtralForCausalLM",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        lake = Warehouse.open(f"{scratch}/lake", create=True).storage.url
        jobs = []
        for key in MODELS:
            source, name = key.split(":")
            ref = registry.refs_of(registry.get(source), [name])[0]
            jobs.append(Job(key, payload(ref, Variant(), lake)))
        peaks = {}
        preload = ("torch", "timm", "transformers", "benchmarks.llama_7b")
        with WorkerPool(1, Limits(), "benchmarks.llama_7b:run", preload) as pool:
            for result in pool.map_unordered([*jobs, Job("llama 7B, 32 layers", {})]):
                status = result.failure.kind if result.failure else f"{result.value['nodes']} nodes"
                peaks[result.id] = round(result.peak_mb)
                print(f"{result.id:45} {result.peak_mb:8.0f} MiB {result.seconds:7.1f} s  {status}", flush=True)
    print(json.dumps({"largest_peak_mib": max(peaks.values())}))


if __name__ == "__main__":
    main()
