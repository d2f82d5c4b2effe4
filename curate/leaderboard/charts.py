"""The curves of a board, drawn: ES_t by level, and how many cases are faster than any given factor.

In goes a Board, out comes a matplotlib figure as SVG (to stand inside a page) and PNG. Names are data: they are drawn
as plain text, never as mathematics, and cut. The same board gives the same bytes.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import matplotlib

matplotlib.use("agg")

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from curate.leaderboard.boards import Board, Entry

#: Colours that colour-blind readers tell apart (Okabe and Ito), each again with another dash.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "passnet", "font.family": "sans-serif", "font.size": 10,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chart:
    """name: of its files, without a suffix. title: what it shows. svg: an element for a page. file: SVG, png: bytes."""

    name: str
    title: str
    svg: str
    file: bytes
    png: bytes


def charts(board: Board) -> list[Chart]:
    """ES_t of every submission; with times also its speedups."""
    found = [_chart(f"es-{board.slug}", "Score at each error tolerance, ES_t", _curves(board))]
    if board.timed and any(e.speedups for e in board.entries):
        found.append(_chart(f"speedups-{board.slug}", "Share of cases both correct and faster", _speedups(board)))
    return found


def _curves(board: Board) -> Figure:
    figure, axes = _empty()
    ends = [point["t"] for e in board.entries for point in e.row["curve"]]
    axes.axvspan(0, max(ends), color="#f5f1e6", zorder=0)
    axes.axvline(0, color="#555555", linewidth=1)
    axes.axhline(1, color="#999999", linewidth=0.8)
    for entry, style in _styled(board):
        t = [p["t"] for p in entry.row["curve"]]
        axes.plot(t, [p["ES"] for p in entry.row["curve"]], **style)
        if all(p["low"] is not None for p in entry.row["curve"]) and len(board.entries) <= 6:
            low, high = ([p[end] for p in entry.row["curve"]] for end in ("low", "high"))
            axes.fill_between(t, low, high, color=style["color"], alpha=0.12, linewidth=0)
    axes.annotate("t = 0", (0, 1), xycoords=("data", "axes fraction"), xytext=(4, -2), textcoords="offset points",
                  va="top", color="#555555")  # fmt: skip
    axes.set_xlabel("tolerance level t: strict on the left; right of 0 failures are forgiven by class")
    axes.set_ylabel("ES_t (1: eager)", parse_math=False)
    axes.set_xlim(min(ends), max(ends))
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(min(ends), max(ends) + 1))
    _legend(axes, board)
    return figure


def _speedups(board: Board) -> Figure:
    """The complement of the distribution function over all cases that count: fast_p for every p."""
    figure, axes = _empty()
    axes.axvline(1, color="#555555", linewidth=1)
    for entry, style in _styled(board):
        if not entry.speedups:
            continue
        counted = entry.counted
        x = [entry.speedups[0] / 1.05, *entry.speedups]
        y = [len(entry.speedups) / counted, *((len(entry.speedups) - i - 1) / counted for i in range(len(x) - 1))]
        axes.step(x, y, where="post", **style)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    over = "Inductor" if board.configuration.against == "baseline" else "eager"
    axes.set_xlabel(f"speedup over {over} by the {board.clock} clock")
    axes.set_ylabel("share of cases correct and faster")
    axes.set_ylim(0, 1.02)
    _legend(axes, board)
    return figure


def _empty() -> tuple[Figure, Any]:
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(7.6, 4.2), layout="constrained")
        return figure, figure.subplots()


def _styled(board: Board) -> Iterator[tuple[Entry, dict[str, Any]]]:
    styles = itertools.cycle(itertools.product(DASHES, COLOURS))
    for entry, (dash, colour) in zip(board.entries, styles, strict=False):
        yield entry, {"color": colour, "linestyle": dash, "linewidth": 1.8}


def _legend(axes: Any, board: Board) -> None:
    """Below the axes, so that it hides no curve. A name that begins with _ would be left out if it came from a plot."""
    handles = [Line2D([], [], **style) for _, style in _styled(board)]
    names = [f"{i}. {_plain(e.label)}" for i, (e, _) in enumerate(_styled(board), 1)]
    columns = 2 if len(names) > 1 else 1
    legend = axes.figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _plain(name: str) -> str:
    shown = "".join(c if c.isprintable() and c.isascii() else "?" for c in name)
    return shown if len(shown) <= 36 else f"{shown[:35]}..."


def _chart(name: str, title: str, figure: Figure) -> Chart:
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    with matplotlib.rc_context(_STYLE):
        drawn, pixels = io.BytesIO(), io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(pixels, format="png", dpi=160, metadata={"Software": None})
    return Chart(name, title, _inside(drawn.getvalue().decode(), name), drawn.getvalue(), pixels.getvalue())


def _inside(svg: str, name: str) -> str:
    """The svg element alone, as wide as its place, its ids its own: several stand in one page."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", element, count=1), count=1
    )
    element = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', element)
    element = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', element)
    return re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", element)
