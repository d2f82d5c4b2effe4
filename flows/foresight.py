"""`passnet plan`: what a refresh would do, counted without doing it.

In goes what `passnet refresh` is told, out comes one dictionary: models, distinct configurations, captures that are
there, captures to make, expected core-hours, by family and by library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flows.plan import Plan, plan
from flows.refresh import Request, selected, variants_of
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import open_storage

#: Core-seconds of a capture where a warehouse holds no timings: 1,544 an hour on 2 cores (benchmarks/README.md).
DEFAULT_SECONDS = 4.7


def foresee(request: Request, listing: Callable[[str], None] = lambda source: None) -> dict[str, Any]:
    """What `refresh` would do with the same request. Raises what it raises for a wrong selection."""
    variants = variants_of(request.variants)
    storage = open_storage(request.warehouse)
    chosen = selected(request, storage, listing)
    warehouse = Warehouse(storage)
    parent = warehouse.latest()
    work = plan(warehouse, parent, chosen.refs, variants)
    listed = Counter(ref.source for ref in work.refs)
    hub = chosen.hub_models
    if hub is not None and request.models is None and request.limit is None:
        listed["hub"] = hub.num_rows
    configurations = {ref.config_hash for ref in work.refs}
    seconds, origin = _seconds(warehouse, parent)
    to_capture = work.to_capture
    models = sum(listed.values())
    return {
        "models": models,
        "buildable": len(work.refs),
        "configurations": len(configurations),
        "captures": len(work.wanted) + len(work.held),
        "captured": len(work.held) + len(work.staged),
        "to_capture": len(to_capture),
        "removed_share": round(1 - len(configurations) / models, 4),
        "core_hours": round(sum(seconds(work.wanted[c]["ref"]["source"]) for c in to_capture) / 3600, 2),
        "seconds_from": origin,
        "families": _families(work),
        "libraries": _libraries(work, hub),
        "not_captured": dict(sorted(Counter(c for c in hub["class"].to_pylist() if c).items()))
        if hub is not None
        else {},
    }


def _seconds(warehouse: Warehouse, parent: Snapshot | None) -> tuple[Callable[[str], float], str]:
    """Expected core-seconds of a capture by source, and where they come from."""
    if parent is not None:
        of = dict(zip(*(warehouse.read(parent, "captures", ["capture_id", "source"])[c].to_pylist()
                        for c in ("capture_id", "source")), strict=True))  # fmt: skip
        timed = warehouse.read(parent, "timings", ["capture_id", "seconds"]).to_pylist()
        sums: dict[str, list[float]] = {}
        for row in timed:
            sums.setdefault(of.get(row["capture_id"], ""), []).append(row["seconds"])
        if timed:
            mean = sum(r["seconds"] for r in timed) / len(timed)
            means = {source: sum(v) / len(v) for source, v in sums.items()}
            return lambda source: means.get(source, mean), f"{len(timed)} captures in this warehouse"
    return lambda source: DEFAULT_SECONDS, f"default of {DEFAULT_SECONDS} s a capture: the warehouse holds no timings"


def _families(work: Plan) -> list[dict[str, Any]]:
    models = Counter((ref.source, ref.family) for ref in work.refs)
    distinct = Counter((s, f) for s, f, _ in {(ref.source, ref.family, ref.config_hash) for ref in work.refs})
    waiting = Counter((r["source"], r["family"]) for r in (work.wanted[c]["ref"] for c in work.to_capture))
    return [
        {"source": s, "family": f, "models": n, "configurations": distinct[s, f], "to_capture": waiting[s, f]}
        for (s, f), n in sorted(models.items(), key=lambda item: (-item[1], item[0]))
    ]


def _libraries(work: Plan, hub: pa.Table | None) -> list[dict[str, Any]]:
    """Models by library: of the Hub as it names them, a source of its own being its library."""
    counts: Counter[str] = Counter(ref.source for ref in work.refs if ref.source != "hub")
    built = Counter(counts)
    if hub is not None:
        counts.update(hub["library"].to_pylist())
        built.update(
            library
            for library, kind in zip(hub["library"].to_pylist(), hub["class"].to_pylist(), strict=True)
            if not kind
        )
    return [
        {"library": name, "models": n, "buildable": built[name]}
        for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
