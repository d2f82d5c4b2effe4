"""A PassBench as files, from a choice and the records of its members.

    tasks.json, nodes.parquet          the eval split, as the judge reads it (evaluate/tasks.py)
    train/tasks.json, nodes.parquet    the train split, in the same form
    tasks.parquet, members.parquet     why each task was chosen: rows of the tables `tasks` and `task_members`
    manifest.json                      snapshot, rules, what each filter took, counts, the hash of every file
    README.md, charts/*.png            the card
    samples/                           the eval split in PassNet's own layout, when asked for (samples.py)

Same choice, same bytes: no clock, path or machine gets into a file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curate.passbench.card import card
from curate.passbench.charts import charts
from curate.passbench.choose import Choice
from curate.passbench.figures import figures
from curate.passbench.samples import write_samples
from evaluate import tasks as bench
from warehouse.folders import whole
from warehouse.graph.record import GraphRecord
from warehouse.passbench import TASK_MEMBERS, TASKS

NAME = "PassBench"
MANIFEST = "manifest.json"
FORMAT = 1
_LARGEST_MANIFEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """version: the bench's name and content hash. tasks, members: rows of the warehouse's tables. figures: by split.

    samples: counts of what was written in PassNet's layout; None when it was not asked for.
    """

    version: str
    tasks: pa.Table
    members: pa.Table
    figures: dict[str, dict[str, Any]]
    samples: dict[str, int] | None = None


def write(
    folder: Path,
    choice: Choice,
    records: Mapping[str, GraphRecord],
    snapshot: str,
    with_samples: bool = False,
) -> Written:
    """Write `folder`, which is missing, empty or an earlier PassBench and nothing else. Raises WarehouseError."""
    names = task_names(choice.tasks)
    with whole(folder, "write a PassBench", "a PassBench", _ours) as draft:
        version = bench.write(draft, NAME, _tasks(choice, "eval", names, records)).version
        if choice.of("train"):
            bench.write(draft / "train", f"{NAME}-train", _tasks(choice, "train", names, records))
        about = {"bench": version, "device": choice.rules.device, "seed": choice.rules.seed, "snapshot": snapshot}
        tasks = _table(choice.tasks, names, about, TASKS.schema)
        members = _table(choice.members, names, about, TASK_MEMBERS.schema)
        for name, table in (("tasks", tasks), ("members", members)):
            pq.write_table(table, draft / f"{name}.parquet", compression="zstd")
        counted = {split: figures(choice, split) for split in ("eval", "train")}
        drawn = charts(choice)
        (draft / "charts").mkdir()
        for name, image in drawn.items():
            (draft / "charts" / f"{name}.png").write_bytes(image)
        (draft / "README.md").write_text(card(choice, counted, names, about, sorted(drawn)), encoding="utf-8")
        samples = write_samples(draft, choice, names, records) if with_samples else None
        held = {
            "format": FORMAT,
            "name": NAME,
            **about,
            "samples": samples,
            "rules": asdict(choice.rules),
            "filters": choice.funnel,
            "figures": counted,
            "files": _hashed(draft),
        }
        (draft / MANIFEST).write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    return Written(version, tasks, members, counted, samples)


def task_names(tasks: list[dict[str, Any]]) -> dict[str, str]:
    """Structure -> task id: its operators in words and the beginning of the hash, so that a folder says what it is."""
    names = {}
    for task in tasks:
        words = [re.sub(r"[^a-z0-9_]+", "", op.rsplit(".", 1)[-1].lower()).strip("_") for op in task["ops"]]
        told = "-".join([w for w in words if w][:4])[:48].strip("-_") or "task"
        more = f"-{len(words)}ops" if len(words) > 4 else ""
        names[task["structure_hash"]] = f"{told}{more}-{task['structure_hash'][:10]}"
    return names


def _tasks(
    choice: Choice, split: str, names: Mapping[str, str], records: Mapping[str, GraphRecord]
) -> list[bench.Task]:
    members: dict[str, list[bench.Member]] = {}
    for m in choice.members:
        if m["split"] == split:
            one = bench.Member(m["subgraph_hash"], records[m["subgraph_hash"]], m["case"], m["dtype"])
            members.setdefault(m["structure_hash"], []).append(one)
    return [
        bench.Task(names[t["structure_hash"]], tuple(members[t["structure_hash"]]), t["stratum"])
        for t in choice.of(split)
    ]


def _table(rows: list[dict[str, Any]], names: Mapping[str, str], about: dict[str, Any], schema: pa.Schema) -> pa.Table:
    whole_rows = [{**about, **row, "task": names[row["structure_hash"]]} for row in rows]
    table = pa.Table.from_pylist([{k: r[k] for k in schema.names} for r in whole_rows], schema)
    return table.sort_by([("split", "ascending"), ("task", "ascending")])


def _hashed(folder: Path) -> dict[str, dict[str, Any]]:
    paths = sorted(p for p in folder.rglob("*") if p.is_file())
    return {
        p.relative_to(folder).as_posix(): {
            "bytes": p.stat().st_size,
            "sha256": hashlib.sha256(p.read_bytes()).hexdigest(),
        }
        for p in paths
    }


def _ours(folder: Path) -> set[str]:
    """Paths that the folder's own manifest names, itself included; none where there is none."""
    try:
        if (folder / MANIFEST).stat().st_size > _LARGEST_MANIFEST:
            return set()
        held = json.loads((folder / MANIFEST).read_bytes())
        return {MANIFEST, *map(str, held["files"])} if held["name"] == NAME else set()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
