"""PassBench on disk, as the judge reads it: a folder of two files, checked against its own content hash.

    tasks.json      {"format": 1, "name": "...", "content": "<hash>", "tasks": [{"id", "stratum", "members": [...]}]}
    nodes.parquet   rows of `nodes`, the records of every member by its hash

A member is {"hash", "case", "dtype"}: the subgraph's hash in nodes.parquet, `given` or the name of a held-out variant.
`write` makes the folder, `read` gives it back; the same tasks give the same content hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.graph.record import GraphRecord, RecordError
from warehouse.rows import node_table, records_from_table

FORMAT = 1


class BenchError(ValueError):
    """A folder that is no PassBench. kind: missing, damaged or version. One line that says what to do."""

    def __init__(self, kind: str, message: str):
        super().__init__(" ".join(message.split())[:500])
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Member:
    """One subgraph of a task. case: `given`, or the name of a held-out variant. dtype: of its floating inputs."""

    hash: str
    record: GraphRecord
    case: str = "given"
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """id: of letters, digits, - and _; the submission's folder has this name."""

    id: str
    members: tuple[Member, ...]
    stratum: str = "fusible"


@dataclass(frozen=True, slots=True)
class Bench:
    """name: without the hash. content: hash of all that is judged."""

    name: str
    content: str
    tasks: dict[str, Task]

    @property
    def version(self) -> str:
        """What rows of `evaluations` call it."""
        return f"{self.name} {self.content[:12]}"


def write(folder: Path, name: str, tasks: Sequence[Task]) -> Bench:
    """Make the folder, or replace its two files. Raises ValueError for a task without members or an id used twice."""
    if len({t.id for t in tasks}) < len(tasks):
        raise ValueError("a task's id is used twice")
    if empty := next((t.id for t in tasks if not t.members), None):
        raise ValueError(f"task {empty} has no members")
    records = {m.hash: m.record for t in tasks for m in t.members}
    table = node_table(sorted(records.items()))
    listed = [
        {
            "id": t.id,
            "stratum": t.stratum,
            "members": [{"hash": m.hash, "case": m.case, "dtype": m.dtype} for m in t.members],
        }
        for t in sorted(tasks, key=lambda t: t.id)
    ]
    content = _content(name, listed, table)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "nodes.parquet", compression="zstd")
    held = {"format": FORMAT, "name": name, "content": content, "tasks": listed}
    (folder / "tasks.json").write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    return Bench(name, content, {t.id: t for t in tasks})


def read(folder: Path) -> Bench:
    """Raises BenchError."""
    try:
        held = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BenchError("missing", f"{folder} holds no tasks.json: give --bench the folder of a PassBench") from None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, f"tasks.json cannot be read ({error})") from None
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        found = held.get("format") if isinstance(held, dict) else None
        raise BenchError("version", f"{folder} is of format {found!r}, this program reads {FORMAT}: make it again")
    try:
        table = pq.read_table(folder / "nodes.parquet")
        records = records_from_table(table)
    except (OSError, pa.ArrowException, RecordError) as error:
        raise _damaged(folder, f"nodes.parquet cannot be read ({error})") from None
    try:
        name, listed = str(held["name"]), held["tasks"]
        tasks = [_task(t, records) for t in listed]
        content = _content(name, listed, node_table(sorted(records.items())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(folder, f"tasks.json does not fit nodes.parquet ({type(error).__name__}: {error})") from None
    if content != held.get("content"):
        raise _damaged(folder, "its content is not what its hash says")
    return Bench(name, content, {t.id: t for t in tasks})


def _task(held: dict[str, Any], records: dict[str, GraphRecord]) -> Task:
    members = tuple(
        Member(m["hash"], records[m["hash"]], str(m["case"]), None if m["dtype"] is None else str(m["dtype"]))
        for m in held["members"]
    )
    if not members:
        raise ValueError(f"task {held['id']} has no members")
    return Task(str(held["id"]), members, str(held["stratum"]))


def _content(name: str, listed: list[Any], table: pa.Table) -> str:
    """Over the values, not the bytes of Parquet, which differ between its versions."""
    digest = hashlib.blake2b(json.dumps([FORMAT, name, listed], sort_keys=True).encode(), digest_size=16)
    rows = table.to_pylist()
    for row in sorted(rows, key=lambda r: (r["graph_hash"], r["scope"], r["idx"])):
        digest.update(json.dumps(row, sort_keys=True).encode())
    return digest.hexdigest()


def _damaged(folder: Path, what: str) -> BenchError:
    return BenchError("damaged", f"{folder}: {what}; fetch it or make it again")
