"""Share of random models that are captured, source by source, with every failure classed; and captures an hour.

    python benchmarks/zoo_yield.py PART [--count N] [--seed S] [--warehouse DIR]

PART is `timm` (architectures), `types` (transformers configuration types through AutoModel), `pairs` (transformers
type and head class), `torchvision` (all of it), or `mixed` (a third from each, for models an hour).
The sample is refreshed into a fresh warehouse, so the figures are those of `passnet refresh` itself, start-up included.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from warehouse.sql import connect

BIN = Path(sys.executable).parent


def population(part: str) -> list[str]:
    """`source:name` of every model that a part may draw."""
    import timm
    from torchvision.models import list_models

    from extract.sources import registry

    if part == "timm":
        return [f"timm:{name}" for name in timm.list_models()]
    if part == "torchvision":
        return [f"torchvision:{name}" for name in list_models() if not name.startswith("quantized_")]
    pairs = [f"transformers:{name}" for name in registry.names_of(registry.get("transformers"))]
    if part == "types":
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        first = {t: c[0] if isinstance(c, list | tuple) else c for t, c in MODEL_MAPPING_NAMES.items()}
        return [f"transformers:{t}/{c}" for t, c in first.items()]
    return pairs


def sample(part: str, count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    if part == "mixed":
        third = [sample(p, n, seed) for p, n in (("timm", count // 2), ("pairs", count // 3), ("torchvision", 109))]
        rest = count - len(third[0]) - len(third[1])
        return third[0] + third[1] + third[2][:rest]
    every = population(part)
    return draw.sample(every, min(count, len(every)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=["timm", "types", "pairs", "torchvision", "mixed"])
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warehouse", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lake = options.warehouse or f"{scratch}/lake"
        models = Path(scratch) / "models.txt"
        models.write_text("\n".join(sample(options.part, options.count, options.seed)))
        command = [str(BIN / "passnet"), "refresh", "--models", str(models), "--warehouse", lake, "--json"]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        connection = connect(lake)
        query = (Path(__file__).parent / "failures.sql").read_text()
        for row in connection.execute(query).fetchall():
            print(*row, sep="  ")
    total = found["captured"] + sum(found["failed"].values())
    unbuilt = sum(
        n for kind, n in found["failed"].items() if kind in ("config_invalid", "build_error", "missing_dependency")
    )
    print(
        json.dumps(
            {
                "part": options.part,
                "seed": options.seed,
                "captures": total,
                "captured": found["captured"],
                "share": round(found["captured"] / total, 4),
                "share_of_those_that_build": round(found["captured"] / (total - unbuilt), 4),
                "failed": found["failed"],
                "seconds": found["seconds"],
                "models_per_hour": round(3600 * found["models"] / found["seconds"]),
            }
        )
    )


if __name__ == "__main__":
    main()
