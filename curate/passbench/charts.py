"""Pictures of a bench for its card: frequency curve, slowdown and headroom of its members, mix of its tasks.

In goes a choice, out come PNGs by name. The same choice gives the same bytes.
"""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import matplotlib

matplotlib.use("agg")

from matplotlib.figure import Figure

from curate.passbench.choose import Choice

_STYLE = {
    "font.family": "sans-serif", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e4e4e4", "axes.axisbelow": True,
}  # fmt: skip
_CLOCKS = (("host_ratio", "host clock", "#0072b2"), ("device_ratio", "device clock", "#d55e00"))
#: Shown operator mixes; the rest are one bar.
_MIXES = 15


def charts(choice: Choice) -> dict[str, bytes]:
    """PNGs by name, without those that have nothing to show."""
    profiled = [m for m in choice.members if m["split"] == "eval" and m["profiled"]]
    found = {}
    with matplotlib.rc_context(_STYLE):
        if choice.curve:
            found["frequency"] = _frequency(choice.curve, choice.head)
        if profiled:
            found["slowdown"] = _slowdown(profiled, choice.rules.slower)
        if any(m["headroom"] for m in profiled):
            found["headroom"] = _headroom(profiled, choice.rules.headroom)
        if choice.of("eval"):
            found["mix"] = _mix(choice.of("eval"))
    return found


def _frequency(curve: list[int], head: int) -> bytes:
    figure, axes = _empty()
    places = range(1, len(curve) + 1)
    axes.step(places, curve, where="mid", color="#0072b2")
    if head:
        axes.axvline(head + 0.5, color="#d55e00")
        axes.annotate("long tail", (head + 0.5, 1), xycoords=("data", "axes fraction"), xytext=(5, -12),
                      textcoords="offset points", color="#d55e00")  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operator sequence, most frequent first")
    axes.set_ylabel("graph templates that hold it")
    return _png(figure)


def _slowdown(members: list[dict[str, Any]], slower: float) -> bytes:
    figure, axes = _empty()
    bins = [2 ** (k / 4) for k in range(-16, 17)]
    for column, name, colour in _CLOCKS:
        values = [min(max(m[column], bins[0]), bins[-1] * 0.999) for m in members if m[column] is not None]
        if values:
            share = sum(v > slower for v in values) / len(values)
            axes.hist(values, bins, alpha=0.6, color=colour, label=f"{name}: {share:.0%} slower than {slower:g}")
    axes.axvline(1, color="#555555")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("Inductor's time over eager's")
    axes.set_ylabel("profiled subgraphs")
    axes.legend(frameon=False)
    return _png(figure)


def _headroom(members: list[dict[str, Any]], least: float) -> bytes:
    figure, axes = _empty()
    bins = [2 ** (k / 4) for k in range(-2, 21)]
    values = [min(max(m["headroom"], bins[0]), bins[-1] * 0.999) for m in members if m["headroom"] is not None]
    axes.hist(values, bins, color="#009e73")
    axes.axvline(least, color="#d55e00")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("headroom: Inductor's device time over the floor")
    axes.set_ylabel("profiled subgraphs")
    return _png(figure)


def _mix(tasks: list[dict[str, Any]]) -> bytes:
    counts = Counter(t["op_mix"] for t in tasks)
    shown = sorted(counts, key=lambda m: (-counts[m], m))[:_MIXES]
    rows = [(m, counts[m]) for m in shown]
    if rest := sum(counts.values()) - sum(n for _, n in rows):
        rows.append((f"{len(counts) - len(rows)} others", rest))
    figure = Figure(figsize=(7.6, 0.8 + 0.28 * len(rows)), layout="constrained")
    axes = figure.subplots()
    names = [m if len(m) <= 52 else f"{m[:51]}..." for m, _ in rows]
    axes.barh(range(len(rows)), [n for _, n in rows], color="#56b4e9")
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("tasks, by the families of their operators")
    return _png(figure)


def _empty() -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    return figure, figure.subplots()


def _png(figure: Figure) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=130, metadata={"Software": None})
    return held.getvalue()
