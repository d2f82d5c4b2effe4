"""What a bench looks like in numbers: counts for the manifest, the card and the command's closing lines.

In goes a `Choice`, out come plain numbers. Nothing here decides anything.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from curate.passbench.choose import Choice


def figures(choice: Choice, split: str) -> dict[str, Any]:
    """Counts of one split. room_share: tasks slower on the device or with headroom in at least one profiled member."""
    tasks = choice.of(split)
    members = [m for m in choice.members if m["split"] == split]
    rules = choice.rules
    room = [t for t in tasks if (t["device_ratio"] or 0) > rules.slower or (t["headroom"] or 0) >= rules.headroom]
    return {
        "tasks": len(tasks),
        "subgraphs": len(members),
        "held_out": sum(m["case"] != "given" for m in members),
        "profiled": sum(m["profiled"] for m in members),
        "families": len({f for t in tasks for f in t["families"]}),
        "home_families": len({t["family"] for t in tasks}),
        "operator_sequences": len({t["op_hash"] for t in tasks}),
        "operator_mixes": len({t["op_mix"] for t in tasks}),
        "strata": _counted(t["stratum"] for t in tasks),
        "dtypes": _counted(m["dtype"] for m in members),
        "kinds": _counted(t["kind"] for t in tasks),
        "room_share": round(len(room) / len(tasks), 4) if tasks else None,
    }


def lacking(choice: Choice) -> tuple[int, str, int]:
    """(tasks there are, the filter that took the most structures, how many it took) for a choice that fell short."""
    taken = [r for r in choice.funnel if r["filter"] not in ("chosen", "not_needed")]
    worst = max(taken, key=lambda r: (r["structures"], -r["step"]))
    return len(choice.of("eval")), worst["filter"], worst["structures"]


def _counted(values: Any) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
