"""Each layer of the judge off in turn: which exploit fixtures get through. Prints the table of docs/integrity.md.

    PYTHONPATH=. python benchmarks/ablation.py [--screen-off]

--screen-off: the static screen is deaf all along, so that the layers behind it show what they are good for.
"""

from __future__ import annotations

import sys
from dataclasses import fields

from evaluate.integrity.layers import Layers
from evaluate.judge.workers import Workers
from tests.exploits.running import NAMES, about, verdict

#: Layers that say something on a CPU; floor and clocks need a GPU.
HERE = [f.name for f in fields(Layers) if f.name not in ("floor", "clocks", "containment")]


def through(workers: Workers, layers: Layers) -> list[str]:
    """Fixtures that are judged clean with these layers."""
    chosen = [n for n in NAMES if not n.startswith("control") and about(n)["verdict"] != "timeout"]
    return [n for n in chosen if verdict(workers, n, layers)[0] == "clean"]


def main() -> None:
    deaf = "--screen-off" in sys.argv
    print(f"| layer off{' (screen off throughout)' if deaf else ''} | get through |\n| --- | --- |")
    with Workers("cpu") as workers:
        for name in ["none", *HERE]:
            off = {name: False} if name != "none" else {}
            off |= {"screen": False} if deaf else {}
            found = through(workers, Layers(**off))
            print(f"| {name} | {len(found)}: {', '.join(found) or '-'} |", flush=True)


if __name__ == "__main__":
    main()
