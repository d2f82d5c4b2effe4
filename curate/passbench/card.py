"""The card of a bench, `README.md`: what is in it, by which rules, and what each filter took.

In goes a choice with its counts, out comes Markdown. Names of models and operators are data and are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from curate.passbench.choose import Choice

#: What a filter takes, in words; docs/passbench.md has the same table.
FILTERS = {
    "lone": "a single operator, or operators that only view",
    "no_floats": "no floating-point input",
    "unprofiled": "no figures on the device",
    "not_measured": "profiling ended with a class other than ok",
    "several_kernels": "Inductor does not make exactly one kernel of it",
    "trivial_answer": "zeros, a constant or a copy of an input would be correct",
    "ignores_inputs": "some input changes no output",
    "inexact": "no reference, or Inductor or eager beyond what the judge admits",
    "unstable": "the clock's spread is too wide",
    "launch_noise": "its device work is not more than a launch",
    "frequent": "its operator sequence is in the head of the frequency curve",
    "well_served": "not slower under Inductor by a clock, and without headroom",
    "straddling": "models of both splits hold it",
    "not_needed": "a candidate that was not needed",
    "chosen": "in a task",
}
_CAPTIONS = {
    "frequency": "Operator sequences by how many graph templates hold them; the long tail is right of the line",
    "slowdown": "Profiled members of the eval split: Inductor's time over eager's, by each clock",
    "headroom": "Profiled members of the eval split: Inductor's device time over the floor",
    "mix": "Tasks of the eval split by the families of their operators",
}
_TEXT = """\
# {version}

Tasks for compiler passes: subgraphs of real models that are one kernel to Inductor, are rare, and are served badly by
it. Made by `passnet regenerate --seed {seed}` from snapshot {snapshot}, by figures of {device}. The rules, every
filter's count and the hash of every file are in `manifest.json`; docs/passbench.md of the project explains them.

`tasks.json` and `nodes.parquet` are the eval split, `train/` the train split: no model family, template or operator
sequence is in both. A member with the case `given` may be shown to an author; the others are held out.

{figures}

## What each filter took

{filters}

{charts}

## Tasks of the eval split

{tasks}
"""


def card(
    choice: Choice,
    counted: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
    about: Mapping[str, Any],
    drawn: Iterable[str],
) -> str:
    """The whole page. drawn: names of the charts beside it."""
    return _TEXT.format(
        version=about["bench"],
        seed=about["seed"],
        snapshot=about["snapshot"][:12],
        device=_plain(about["device"]),
        figures=_table(("", "eval", "train"), _figures(counted)),
        filters=_table(
            ("filter", "takes", "structures", "subgraphs", "structures left"),
            (
                (r["filter"], FILTERS[r["filter"]], r["structures"], r["subgraphs"], r["structures_left"])
                for r in choice.funnel
            ),
        ),
        charts="\n\n".join(f"{_CAPTIONS[name]}:\n\n![{name}](charts/{name}.png)" for name in drawn),
        tasks=_table(
            ("task", "stratum", "members", "family", "operators", "host", "device", "headroom"),
            (
                (
                    names[t["structure_hash"]], t["stratum"], t["members"], t["family"],
                    " ".join(op.rsplit(".", 1)[-1] for op in t["ops"][:12]) + (" …" if len(t["ops"]) > 12 else ""),
                    _ratio(t["host_ratio"]), _ratio(t["device_ratio"]), _ratio(t["headroom"]),
                )
                for t in choice.of("eval")
            ),
        ),
    )  # fmt: skip


def _figures(counted: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[Any, ...]]:
    for name in counted["eval"]:
        yield (name.replace("_", " "), *(_shown(counted[split][name]) for split in ("eval", "train")))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:,}" for k, v in value.items()) or "none"
    return "none" if value is None else f"{value:,}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    columns = list(head)
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    lines += [f"| {' | '.join(_plain(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _plain(value: Any) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return re.sub(r"([\\|<>`*_\[\]])", r"\\\1", text)
