"""Dask dedup of 5M rows with their payload on 2 worker processes: `python benchmarks/dedup.py [--rows N]`.

Makes Parquet files (zstd) of rows (graph_hash, rank, about 320 bytes of incompressible payload), of which a random 44%
repeat an earlier hash; keeps one row of each through `dedup.least`, the code of a refresh, and writes the kept rows as
Parquet files. Prints seconds from the first read to the last write, and the peak resident memory of each worker.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import dask
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

sys.path.insert(0, str(Path(__file__).parents[1]))

from dedup.least import kept_rows

BAR_SECONDS, BAR_MB = 15.0, 1500
PART_ROWS, GROUP_ROWS = 312_500, 62_500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", default=None, help="keep the rows here, and use those that are there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.folder or scratch)
        parts = make(folder, options.rows)
        result = {"rows": options.rows, "bytes": sum(p.stat().st_size for p in parts), **run(parts, options.workers)}
    result["bars"] = {"seconds": BAR_SECONDS, "worker_mb": BAR_MB}
    print(json.dumps(result))
    return 0 if result["seconds"] <= BAR_SECONDS and max(result["worker_peak_mb"]) <= BAR_MB else 1


def make(folder: Path, rows: int) -> list[Path]:
    """Parquet files of rows in random order. Distinct hashes are about 56% of the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    paths = []
    for number, start in enumerate(range(0, rows, PART_ROWS)):
        count = min(PART_ROWS, rows - start)
        paths.append(path := folder / f"part-{rows}-{number:03d}.parquet")
        hashes = draw.integers(0, int(rows * 0.735), count)
        if path.exists():
            continue
        spread = (hashes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).tolist()  # odd: one number, one hash
        table = pa.table(
            {
                "graph_hash": pa.array([f"{h:016x}{h:016x}" for h in spread]),
                "rank": pa.array([f"{i % 6:02d}|{i:032x}|{i % 7:09d}" for i in range(start, start + count)]),
                "payload": pa.array([draw.bytes(320) for _ in range(count)], pa.binary()),
            }
        )
        pq.write_table(table, path, compression="zstd", row_group_size=GROUP_ROWS)
    return paths


def run(parts: list[Path], workers: int) -> dict[str, object]:
    with (
        tempfile.TemporaryDirectory() as out,
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        kept = kept_rows([dask.delayed(keys)(str(path)) for path in parts])
        written = [
            dask.delayed(take)(str(path), rows, f"{out}/{path.name}") for path, rows in zip(parts, kept, strict=True)
        ]
        counts = dask.compute(*written)
        seconds = time.perf_counter() - start
        distinct = len(np.unique(np.concatenate([hashes(f"{out}/{path.name}") for path in parts])))
        if distinct != sum(counts):
            raise SystemExit(f"{sum(counts)} rows kept of {distinct} hashes")
        peaks = client.run(peak_mb)
    return {
        "kept": sum(counts),
        "seconds": round(seconds, 2),
        "worker_peak_mb": [round(value) for value in peaks.values()],
        "cores": len(os.sched_getaffinity(0)),
        "load": round(psutil.getloadavg()[0], 1),
    }


def keys(path: str) -> pa.Table:
    return pq.read_table(path, columns=["graph_hash", "rank"], use_threads=False)


def take(path: str, rows: pa.Array, out: str) -> int:
    """Write the rows numbered, a row group at a time."""
    wanted, start = rows.to_numpy(), 0
    with pq.ParquetFile(path) as file, pq.ParquetWriter(out, file.schema_arrow, compression="zstd") as sink:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            here = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, start + table.num_rows)]
            sink.write_table(table.take(pa.array(here - start)))
            start += table.num_rows
    return len(wanted)


def hashes(path: str) -> np.ndarray:
    texts = pq.read_table(path, columns=["graph_hash"])["graph_hash"]
    return np.array([int(text[:16], 16) for text in texts.to_pylist()], dtype=np.uint64)


def peak_mb() -> float:
    """Peak resident memory of this process, MiB."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) / 1024


if __name__ == "__main__":
    raise SystemExit(main())
