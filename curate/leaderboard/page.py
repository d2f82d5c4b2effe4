"""The pages of a leaderboard written into a folder.

    index.html                all boards, sortable, with curves and the published rows
    tasks/<task>.html         what the judge found in each case of a task
    charts/*.svg, *.png       the curves by themselves
    report.json               the same figures for machines, and the list of these files

Everything a page needs stands in it: it works from a disk without a network. Names are data: they are escaped where
they are shown, no file is named by them, and a content security policy lets nothing run but the page's own script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import jinja2
from markupsafe import Markup

from curate.leaderboard.boards import Board, Entry, boards, published, slug
from curate.leaderboard.charts import Chart, charts
from evaluate.verdict import Verdict
from warehouse.snapshot import Snapshot

TEMPLATES = Path(__file__).parent / "templates"
_OURS = re.compile(r"(tasks|charts)/[a-z0-9-]+\.(html|svg|png)")


class NotOurs(ValueError):
    """A folder that holds something else: nothing is written there. One line."""


@dataclass(frozen=True, slots=True)
class Report:
    """index: the page to open. files: all that were written. boards: what they show."""

    index: Path
    files: tuple[Path, ...]
    boards: tuple[Board, ...]


def write(connection: duckdb.DuckDBPyConnection, snapshot: Snapshot, out: Path) -> Report | None:
    """Make or replace the pages in `out`; None, and nothing written, when nothing was scored yet.

    Raises NotOurs for a folder that is not empty and holds no leaderboard.
    """
    before = _before(out)
    found = boards(connection)
    if not found:
        return None
    drawn = {board.slug: charts(board) for board in found}
    files = _rendered(found, drawn, snapshot)
    files |= {f"charts/{c.name}.svg": c.file for held in drawn.values() for c in held}
    files |= {f"charts/{c.name}.png": c.png for held in drawn.values() for c in held}
    held = {"snapshot": snapshot.id, "boards": [summary(b) for b in found], "files": sorted(files)}
    files["report.json"] = json.dumps(held, indent=1).encode()
    for name in sorted(before - set(files)):
        (out / name).unlink(missing_ok=True)
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    return Report(out / "index.html", tuple(out / name for name in sorted(files)), tuple(found))


def summary(board: Board) -> dict[str, Any]:
    """A board as plain JSON, rows best first."""
    figures = (
        *("place", "submission", "submission_name", "run", "lowering", "samples", "tasks", "left_out", "complete"),
        *("aggregate", "aggregate_low", "aggregate_high", "pooled", "pooled_low", "pooled_high", "gmean", "gmean_low"),
        *("gmean_high", "correct", "correct_low", "correct_high", "fast", "verdicts", "curve", "layers"),
    )
    return {
        **{k: getattr(board, k) for k in ("bench", "device", "clock", "cases")},
        "configuration": board.configuration_id,
        "rows": [{k: e.row[k] for k in figures} for e in board.entries],
    }


def heading(board: Board) -> str:
    """A board in words."""
    if not board.timed:
        return f"{board.device}: correctness only, {_bench(board)}"
    return f"{board.device}, {board.clock} clock, {_bench(board)}"


def _bench(board: Board) -> str:
    tasks = len(board.tasks)
    return f"{board.bench.split(' ')[0]}, {tasks} task{'' if tasks == 1 else 's'}"


def origin(entry: Entry) -> str:
    """What a row was made with."""
    names = ("host", "driver", "cuda", "torch", "triton", "python", "seed")
    found = {n: sorted({str(c[n]) for c in entry.cases if c[n] is not None}) for n in names}
    return "; ".join(f"{name} {', '.join(values)}" for name, values in found.items() if values)


def _before(out: Path) -> set[str]:
    """The files that an earlier report wrote there."""
    if not out.exists() or not any(out.iterdir()):
        return set()
    try:
        listed = json.loads((out / "report.json").read_text(encoding="utf-8"))["files"]
        return {name for name in listed if isinstance(name, str) and _OURS.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError):
        raise NotOurs(f"{out} holds files and no leaderboard: give another folder with --out") from None


def _rendered(found: list[Board], drawn: dict[str, list[Chart]], snapshot: Snapshot) -> dict[str, bytes]:
    script = (TEMPLATES / "sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages = {(b.bench, t): slug(t, b.bench, t) for b in found for t in b.tasks}
    environment.globals |= {
        "snapshot": snapshot,
        "script": Markup(script),
        "script_hash": f"sha256-{digest}",
        "style": Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
        "verdict_order": [str(v) for v in Verdict],
        "heading": heading,
        "origin": origin,
        "pages": pages,
    }
    index = environment.get_template("index.html.jinja")
    rendered = {"index.html": index.render(boards=found, drawn=drawn, published=published())}
    task_page = environment.get_template("task.html.jinja")
    for (bench, task), name in pages.items():
        about = [b for b in found if b.bench == bench and task in b.tasks]
        rendered[f"tasks/{name}.html"] = task_page.render(task=task, bench=bench, boards=about)
    return {name: text.encode() for name, text in rendered.items()}
