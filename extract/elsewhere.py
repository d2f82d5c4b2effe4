"""Captures made on a machine that has no Prefect, Dask or DuckDB: work goes there as a file and comes back as two.

    python -m extract.elsewhere capture WORK.json FOLDER [--workers N] [--minutes M]      on the other machine
    python -m extract.elsewhere receive FOLDER WAREHOUSE                                  here

WORK.json is a list of {"capture_id", "ref", "variant"}: `work` makes it from the payloads of a plan. The other machine
stages captures as a refresh does, in FOLDER/lake, so the same command goes on after any end, and packs what is staged
into FOLDER/headers.parquet and FOLDER/nodes.parquet. `receive` stages those in a warehouse here; the next refresh with
that selection merges them. The libraries that define the models must be of one version on both machines, since they
are part of what a capture is; torch need not be.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from extract.staged import stage_failure
from extract.workers import Job, Limits, WorkerPool
from warehouse import staging
from warehouse.schema import NODES
from warehouse.storage import open_storage

HEADERS, PARCEL = "headers.parquet", "nodes.parquet"
#: What the warm parent of the workers imports before it forks them.
PRELOAD = ("torch", "timm", "torchvision", "transformers")


def work(payloads: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The content of WORK.json: capture_id -> payload, as `flows.plan.Plan.wanted` has them, less the warehouse."""
    return [{"capture_id": c, "ref": p["ref"], "variant": p["variant"]} for c, p in sorted(payloads.items())]


def capture(wanted: list[dict[str, Any]], folder: Path, workers: int, until: float) -> Counter[str]:
    """Capture what is not staged in FOLDER/lake yet, until `until` (time.monotonic).

    Returns how many captures ended with each status or failure class.
    """
    lake = folder / "lake"
    lake.mkdir(parents=True, exist_ok=True)
    done = staging.finished(open_storage(str(lake)))
    given = {
        row["capture_id"]: {"ref": row["ref"], "variant": row["variant"], "warehouse": str(lake)}
        for row in wanted
        if row["capture_id"] not in done
    }

    counts: Counter[str] = Counter()
    with WorkerPool(workers, Limits(), "extract.job:run", PRELOAD) as pool:
        for result in pool.map_unordered(Job(identity, payload) for identity, payload in given.items()):
            summary = result.value
            if summary is None:
                if result.failure is None:
                    raise RuntimeError(f"capture {result.id} gave neither a result nor a failure")
                summary = stage_failure(given[result.id], result.failure, result.seconds, result.peak_mb)
            counts[summary["class"] or summary["status"]] += 1
            if time.monotonic() > until:
                break  # what is under way is dropped, and made again by the next run
    return counts


def pack(folder: Path) -> int:
    """FOLDER/lake's staged captures as two files; returns how many there are."""
    storage = open_storage(str(folder / "lake"))
    found, tables = [], []
    for identity, header in staging.headers(storage, sorted(staging.finished(storage))):
        if header is None:
            continue
        found.append({"capture_id": identity, "header": json.dumps(header)})
        hashes = [row["graph_hash"] for row in header["graphs"]]
        if hashes:
            nodes = staging.nodes(storage, identity, hashes)
            tables.append(nodes.append_column("capture_id", pa.array([identity] * nodes.num_rows, pa.string())))
    empty = NODES.schema.append(pa.field("capture_id", pa.string())).empty_table()
    nodes = pa.concat_tables([empty, *tables])
    pq.write_table(pa.Table.from_pylist(found), folder / HEADERS, compression="zstd", compression_level=15)
    pq.write_table(nodes, folder / PARCEL, compression="zstd", compression_level=15)
    return len(found)


def receive(folder: Path, warehouse: str) -> int:
    """Stage the captures of a parcel in a warehouse; returns how many. Those already staged there stay as they are."""
    storage = open_storage(warehouse)
    done = staging.finished(storage)
    headers = pq.read_table(folder / HEADERS).to_pylist()
    nodes = pq.read_table(folder / PARCEL).sort_by("capture_id")
    counts = {r["values"]: r["counts"] for r in pc.value_counts(nodes["capture_id"]).to_pylist()}
    starts, start = {}, 0
    for identity in sorted(counts):
        starts[identity], start = start, start + counts[identity]
    received = 0
    for row in headers:
        identity = row["capture_id"]
        if identity in done:
            continue
        own = nodes.slice(starts.get(identity, 0), counts.get(identity, 0)).select(NODES.schema.names)
        staging.write(storage, identity, json.loads(row["header"]), own.cast(NODES.schema))
        received += 1
    return received


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m extract.elsewhere", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("capture", help="capture WORK.json's models into FOLDER, and pack them")
    one.add_argument("work", type=Path)
    one.add_argument("folder", type=Path)
    one.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    one.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    two = commands.add_parser("receive", help="stage FOLDER's captures in WAREHOUSE")
    two.add_argument("folder", type=Path)
    two.add_argument("warehouse")
    options = parser.parse_args()
    try:
        if options.command == "receive":
            print(json.dumps({"received": receive(options.folder, options.warehouse)}))
            return 0
        started = time.monotonic()
        wanted = json.loads(options.work.read_text())
        counts = capture(wanted, options.folder, options.workers, started + 60 * options.minutes)
        seconds = time.monotonic() - started
        print(json.dumps({"seconds": round(seconds, 1), "packed": pack(options.folder), "ended": dict(counts)}))
    except (OSError, ValueError, pa.ArrowException) as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
