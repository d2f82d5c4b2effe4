"""Finished rows on disk: appended one JSON line at a time, each durable before the next subgraph is handed out.

In go rows with the columns of `profiles`, out come the same rows after any number of runs, kills and repeats: a line
cut short by a kill is left out, of several rows with one key the last one counts.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from curate.profile.classes import CLASSES, RETRIED
from warehouse.schema import PROFILES

_COLUMNS = tuple(name for name, _, _ in PROFILES.columns)
_KEY = PROFILES.sort


def blank(subgraph_hash: str, mode: str) -> dict[str, Any]:
    """A row with every column, nearly all of them null."""
    return {**dict.fromkeys(_COLUMNS), "subgraph_hash": subgraph_hash, "mode": mode}


class Results:
    """The folder of one or more runs. A run appends to a file of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file: Any = None

    def rows(self) -> list[dict[str, Any]]:
        """One row each (subgraph, device, mode), sorted by that key."""
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for path in sorted(self.folder.glob("profiles-*.jsonl")):
            for line in path.read_text().splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # the last line of a killed run
                if isinstance(row, dict) and row.get("class") in CLASSES and all(row.get(k) for k in _KEY):
                    found[tuple(row[k] for k in _KEY)] = {name: row.get(name) for name in _COLUMNS}
        return [found[key] for key in sorted(found)]

    def finished(self, device: str, mode: str) -> set[str]:
        """Subgraphs that need no further run on this device."""
        return {
            r["subgraph_hash"]
            for r in self.rows()
            if r["device"] == device and r["mode"] == mode and r["class"] not in RETRIED
        }

    def append(self, row: dict[str, Any]) -> None:
        """Add one row. Numbers that JSON has no form for (NaN, infinity) become null."""
        unknown = sorted(set(row) - set(_COLUMNS))
        if unknown or row["class"] not in CLASSES:
            raise ValueError(f"not a row of profiles: {unknown[0] if unknown else row['class']!r}")
        if self._file is None:
            taken = [int(p.stem.rpartition("-")[2]) for p in self.folder.glob("profiles-*.jsonl")]
            self._file = open(self.folder / f"profiles-{max(taken, default=0) + 1:04d}.jsonl", "x")  # noqa: SIM115
        clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        self._file.write(json.dumps(clean, separators=(",", ":")) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def table(self) -> pa.Table:
        """All rows with the schema of `profiles`."""
        return pa.Table.from_pylist(self.rows(), schema=PROFILES.schema)
