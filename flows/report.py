"""The summary of a refresh, for people and machines: files under `runs/`, Prefect artifacts, the closing tables.

    runs/<snapshot sequence>-<id>/summary.json, summary.md

Artifacts vanish with a server; the files stay with the warehouse.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from extract.failures import CLASSES
from flows.plan import Plan
from warehouse.changes import compare
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import durable


def summarise(warehouse: Warehouse, snapshot: Snapshot, work: Plan) -> dict[str, Any]:
    """What became of every capture asked for, by source and by class, and what deduplication kept."""
    asked = set(work.wanted) | work.held
    captures = warehouse.read(
        snapshot, "captures", ["capture_id", "source", "status", "graph_count", "build", "verified"]
    )
    failures = warehouse.read(snapshot, "failures", ["capture_id", "class", "source"])
    occurrences = warehouse.read(snapshot, "occurrences", ["capture_id", "graph_hash"])
    rows = [r for r in captures.to_pylist() if r["capture_id"] in asked]
    sources: dict[str, Counter[str]] = {}
    for row in rows:
        count = sources.setdefault(row["source"], Counter())
        count["captures"] += 1
        count[row["status"]] += 1
        count["graphs"] += row["graph_count"]
        count["verified"] += row["verified"] == "outputs"
    seen: dict[str, set[str]] = {}
    source_of = {r["capture_id"]: r["source"] for r in rows}
    for row in occurrences.to_pylist():
        if row["capture_id"] in source_of:
            seen.setdefault(source_of[row["capture_id"]], set()).add(row["graph_hash"])
    models = Counter(ref.source for ref in work.refs)
    classes = Counter((r["class"], r["source"]) for r in failures.to_pylist() if r["capture_id"] in asked)
    return {
        "snapshot": snapshot.id,
        "sequence": snapshot.sequence,
        "sources": {
            name: {
                "models": models[name],
                **{key: count[key] for key in ("captures", "complete", "partial", "failed", "graphs", "verified")},
                "unique_graphs": len(seen.get(name, ())),
            }
            for name, count in sorted(sources.items())
        },
        "failures": [{"class": kind, "source": source, "captures": n} for (kind, source), n in sorted(classes.items())],
        "tables": {name: table.written for name, table in sorted(snapshot.tables.items())},
        "changes": compare(warehouse, _parent(warehouse, snapshot), snapshot),
    }


def _parent(warehouse: Warehouse, snapshot: Snapshot) -> Snapshot | None:
    return next((s for s in warehouse.snapshots() if s.id == snapshot.parent), None)


def write_files(warehouse: Warehouse, snapshot: Snapshot, work: Plan) -> dict[str, Any]:
    """Write the summary beside the data and return it."""
    summary = summarise(warehouse, snapshot, work)
    folder = f"runs/{snapshot.sequence:08d}-{snapshot.id[:12]}"
    for name, text in (("summary.json", json.dumps(summary, indent=2)), ("summary.md", markdown(summary))):
        with durable(warehouse.storage, f"{folder}/{name}", "write the summary") as sink:
            sink.write(text.encode())
    return summary


def source_table(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a source: models asked for, captures, their graphs, unique ones kept, and duplicates dropped."""
    return [
        {
            "source": name,
            "models": s["models"],
            "captures": s["captures"],
            "complete": s["complete"],
            "partial": s["partial"],
            "failed": s["failed"],
            "graphs": s["graphs"],
            "kept": s["unique_graphs"],
            "dropped": s["graphs"] - s["unique_graphs"],
        }
        for name, s in summary["sources"].items()
    ]


def failure_table(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a failure class and source, with what the class means; empty when nothing failed."""
    return [{**row, "meaning": CLASSES.get(row["class"], "")} for row in summary["failures"]]


def markdown(summary: dict[str, Any]) -> str:
    """The summary as a page."""
    changes = summary["changes"]
    since = changes["before"]["number"]
    return _page(
        f"Snapshot {summary['sequence']} ({summary['snapshot'][:12]})",
        ("Captures asked for", source_table(summary)),
        ("Failures", failure_table(summary)),
        (f"Graphs since {'the beginning' if since is None else f'snapshot {since}'}", changes["graphs"]),
        ("Captures since then", changes["captures"]),
    )


def changes_markdown(changes: dict[str, Any]) -> str:
    """What came and went between two snapshots (`warehouse.changes.compare`) as a page."""
    before, after = changes["before"], changes["after"]
    if before["id"] == after["id"]:
        return f"# Nothing new\n\nSnapshot {after['number']} ({after['id'][:12]}) is still the newest.\n"
    since = "the beginning" if before["number"] is None else f"snapshot {before['number']}"
    return _page(
        f"From {since} to snapshot {after['number']} ({after['id'][:12]})",
        ("Rows", [{"table": name, **counts} for name, counts in changes["rows"].items()]),
        *((kind.capitalize(), changes[kind]) for kind in ("graphs", "models", "captures", "failures")),
    )


def _page(title: str, *sections: tuple[str, list[dict[str, Any]]]) -> str:
    lines = [f"# {title}", ""]
    for heading, rows in sections:
        if not rows:
            continue
        lines += [f"## {heading}", ""]
        lines += ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
        lines += ["| " + " | ".join(_cell(v) for v in row.values()) + " |" for row in rows] + [""]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    """Names are data: nothing in them may end a cell, a row or the page's own markup."""
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
