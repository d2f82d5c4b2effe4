"""One row of each graph_hash kept, over any number of parts: keys first, then a semi-join.

A part is anything that holds rows: staged captures, a Parquet file. In go the keys of each part, out come the numbers
of the rows that each part keeps. Only keys travel between workers; what else a row holds is read afterwards, and only
of rows that are kept. The row kept is the least by rank, a minimum, so neither parts nor buckets nor workers change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: What `keys` of a part must look like: a row for each of its rows, in its order.
KEYS = pa.schema([("graph_hash", pa.string()), ("rank", pa.string())])
#: Parts whose keys one bucket's worth of memory can hold, and the most buckets that are worth their tasks.
PARTS_A_BUCKET, MOST_BUCKETS = 8, 16
_DIGITS = pa.array([f"{i:02x}" for i in range(256)])
_PART, _ROW = 6, 10  # digits


def rank(first: int, capture_id: str, graph_index: int) -> str:
    """(priority, id) as one text that sorts alike, so that the least row is a plain minimum."""
    return f"{first:02d}|{capture_id}|{graph_index:09d}"


def kept_rows(keys: Sequence[Any], buckets: int | None = None) -> list[Any]:
    """For each part, its sorted row numbers (int64 array) that are the least of their graph_hash over all parts.

    `keys` are Dask-delayed tables of `KEYS`; so are the results, as arrays. Where two rows have one rank, the earlier
    part's earlier row is kept.
    """
    buckets = buckets or min(MOST_BUCKETS, 1 + len(keys) // PARTS_A_BUCKET)
    split = [dask.delayed(_split, nout=buckets)(table, part, buckets) for part, table in enumerate(keys)]
    least = [
        dask.delayed(_least, nout=len(keys))([pieces[bucket] for pieces in split], len(keys))
        for bucket in range(buckets)
    ]
    return [dask.delayed(_joined)([found[part] for found in least]) for part in range(len(keys))]


def _split(keys: pa.Table, part: int, buckets: int) -> list[pa.Table]:
    """The keys by beginning of their hash; where a row stands becomes the end of its rank."""
    keys = keys.cast(KEYS)
    rows = pc.utf8_lpad(pa.array(range(keys.num_rows), pa.int64()).cast(pa.string()), _ROW, "0")
    ranked = pc.binary_join_element_wise(keys["rank"], f"{part:0{_PART}d}", rows, "|")
    table = pa.table({"graph_hash": keys["graph_hash"], "rank": ranked})
    if buckets == 1:
        return [table]
    digits = pc.index_in(pc.utf8_slice_codeunits(keys["graph_hash"], 0, 2), _DIGITS)
    bucket = pc.bit_wise_and(pc.fill_null(digits, 0), pa.scalar(255, pa.int32())).to_numpy() * buckets // 256
    return [table.filter(pa.array(bucket == b)) for b in range(buckets)]


def _least(pieces: list[pa.Table], parts: int) -> list[np.ndarray]:
    """Row numbers of the least rank of each hash, a list by part."""
    keys = pa.concat_tables(pieces).combine_chunks()  # copies, since what came over the network is not aligned
    table = keys.group_by("graph_hash", use_threads=False).aggregate([("rank", "min")])
    where = pc.utf8_slice_codeunits(table["rank_min"], -_ROW - 1 - _PART, 2**31 - 1)
    part = pc.utf8_slice_codeunits(where, 0, _PART).cast(pa.int64()).to_numpy()
    row = pc.utf8_slice_codeunits(where, _PART + 1, _PART + 1 + _ROW).cast(pa.int64()).to_numpy()
    order = np.argsort(part, kind="stable")
    return np.split(row[order], np.searchsorted(part[order], np.arange(1, parts)))


def _joined(rows: list[np.ndarray]) -> pa.Array:
    return pa.array(np.sort(np.concatenate(rows)), pa.int64())
