"""Nodes hashed a second on one core: all four hashes of real graphs.

    python benchmarks/hashing.py [--models resnet50,vit_base_patch16_224,...] [--rounds 5]

Graphs are captured first. Each round hashes records whose strings were made anew, as they are when read from Parquet:
"cold" starts with an empty memory of row bodies for every graph, "warm" keeps it, as a refresh does. Seconds are those
of the processor, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch

from dedup import hashes as hashing
from dedup.bodies import Bodies
from extract.capture import capture
from extract.model import Variant
from extract.sources import registry
from warehouse.rows import node_table, records_from_table

MODELS = "resnet50,vit_base_patch16_224,swin_tiny_patch4_window7_224,convnext_tiny,efficientnet_b0,mixer_b16_224"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    source = registry.get("timm")
    records = []
    for name in options.models.split(","):
        found = capture(source, source.ref(name), Variant())  # type: ignore[attr-defined]
        records += [g.record for g in found.graphs]
    nodes = sum(r.num_nodes() for r in records)
    traits = hashing._listed_traits()
    rates: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(options.rounds):
        for way in rates:
            fresh = [records_from_table(node_table([("", r)]))[""] for r in records]
            start = time.process_time()
            bodies = Bodies(traits)
            for record in fresh:
                if way == "cold":
                    bodies = Bodies(traits)
                hashing._hashed(record, bodies)
            rates[way].append(nodes / (time.process_time() - start))
    summary = {way: round(statistics.median(found)) for way, found in rates.items()}
    print(json.dumps({"graphs": len(records), "nodes": nodes, "nodes_per_second": summary}))


if __name__ == "__main__":
    main()
