"""What a refresh shows while it runs: a rich bar on a terminal, a line every ten seconds elsewhere; all on stderr."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from flows.plan import Plan

#: Seconds between lines where there is no terminal.
EVERY = 10.0


class Display:
    """Context manager; hand its `started` to the refresh."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.plan: Plan | None = None
        self._counts: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._bar: Progress | None = None
        self._total = self._shown = 0

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._total and self._shown != len(self._seen):
            self._line()

    def started(self, plan: Plan) -> Any:
        """Show what there is to do; returns the function to call with each capture's summary."""
        self.plan = plan
        unique = len(plan.wanted) + len(plan.held)
        self._total = len(plan.to_capture)
        self.console.print(
            f"{len(plan.refs)} models, {unique} distinct captures: {len(plan.held)} in the snapshot, "
            f"{len(plan.staged)} finished earlier, {self._total} to do",
            soft_wrap=True,
        )
        if self._total and self.console.is_terminal:
            self._bar = Progress(
                TextColumn("capturing"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self.console,
            )
            self._task = self._bar.add_task("captures", total=self._total, note="")
            self._bar.start()
        return self.finished

    def finished(self, summary: dict[str, Any]) -> None:
        """One capture is done. May be called from any thread, and again for a batch that was tried again."""
        with self._lock:
            if summary["capture_id"] in self._seen:
                return
            self._seen.add(summary["capture_id"])
            self._counts[summary["class"] or "captured"] += 1
            if self._bar is not None:
                self._bar.update(self._task, completed=len(self._seen), note=self._note())
            elif time.monotonic() - self._last >= EVERY:
                self._line()

    def _note(self) -> str:
        return ", ".join(f"{n} {kind}" for kind, n in sorted(self._counts.items(), key=lambda kv: (-kv[1], kv[0])))

    def _line(self) -> None:
        self._last, self._shown = time.monotonic(), len(self._seen)
        self.console.print(f"{len(self._seen)} of {self._total}: {self._note()}", soft_wrap=True)


def one_line(summary: dict[str, Any]) -> str:
    """A finished capture in a line, for logs."""
    found = summary["class"] or f"{summary['graphs']} graphs, {summary['nodes']} nodes"
    return f"{summary['source']}:{summary['name']!r}: {found}, {summary['seconds']:.1f} s"
