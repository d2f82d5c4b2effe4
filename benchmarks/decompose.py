"""Fusible candidates of captured graphs: how many, how far they dedup, and the seconds a graph.

    python benchmarks/decompose.py [--models timm:resnet18,transformers:gpt2/GPT2LMHeadModel,...] [--check]

--check also runs every candidate on the CPU and compares it with its parent bit for bit (large models: minutes).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch

from dedup.hashes import hashes
from extract.capture import capture
from extract.model import Variant
from extract.sources import registry
from extract.subgraphs.carve import Parent
from extract.subgraphs.fusible import barriers, candidates, computes
from extract.subgraphs.splice import runs_as_in_parent

MODELS = (
    "timm:resnet18,timm:vit_tiny_patch16_224,timm:swin_tiny_patch4_window7_224,timm:convnext_atto,"
    "timm:efficientnet_b0,timm:mixer_b16_224,torchvision:shufflenet_v2_x0_5,transformers:gpt2/GPT2LMHeadModel,"
    "transformers:t5/T5Model,transformers:llama/LlamaModel,transformers:distilbert/DistilBertModel"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    graphs, found, seconds, covered, differing, failed = 0, [], [], [], 0, []
    for key in options.models.split(","):
        source, _, name = key.partition(":")
        zoo = registry.get(source)
        capture_ = capture(zoo, zoo.ref(name), Variant())  # type: ignore[attr-defined]
        if capture_.failure is not None:
            failed.append(f"{key}: {capture_.failure.kind}")
        for graph in capture_.graphs:
            graphs += 1
            start = time.perf_counter()
            parent = Parent.of(graph.record)
            pieces = candidates(parent)
            seconds.append(time.perf_counter() - start)
            light = {r for r, n in enumerate(parent.record.nodes) if computes(n)} - barriers(parent)
            if light:
                covered.append(len(light & {r for p in pieces for r in p.rows}) / len(light))
            if options.check:
                differing += sum(d is not None for d in runs_as_in_parent(graph.record, pieces))
            found += [hashes(p.record) for p in pieces]
    summary = {
        "graphs": graphs,
        "incomplete": failed,
        "candidates": len(found),
        "exact": len({h.graph_hash for h in found}),
        "structures": len({h.structure_hash for h in found}),
        "light_operators_in_a_candidate_median": round(statistics.median(covered), 3) if covered else None,
        "seconds_per_graph": round(statistics.mean(seconds), 3) if seconds else None,
        "differing_from_parent": differing if options.check else None,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
