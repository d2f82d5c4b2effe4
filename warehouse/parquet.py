"""How every Parquet file of a warehouse is written: one place for order, encodings, compression and row-group size.

In goes an Arrow table and a file to write to, out come the bytes: the same rows give the same bytes, whatever order
they came in (with one version of pyarrow, whose name Parquet files carry).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from warehouse.schema import Table
from warehouse.storage import WarehouseError

#: Rows of a row group: DuckDB scans 122,880 rows a vector batch, and small groups cost bytes.
ROW_GROUP_ROWS = 122_880
#: Rows of a file: what is rewritten, carried or fetched as one piece stays in the tens of megabytes.
FILE_ROWS = 32 * ROW_GROUP_ROWS

#: Integers that count up along the rows, where differences beat a dictionary.
_DELTA = {"idx", "slot", "effect"}
#: Texts that share beginnings with their neighbours (`layers.0.weight`, `layers.0.bias`).
_FRONT_CODED = {"name", "config", "capture_id"}

#: Texts whose least and greatest value no query asks for, and which would stand in every page's head.
_LONG_TEXTS = {"args", "kwargs", "elements", "recipe", "expr", "config", "message", "place"}

#: Rows of one table: in memory, or the address of a Parquet file that holds them.
Rows: TypeAlias = pa.Table | str | os.PathLike[str]


def parquet_options(table: Table) -> dict[str, Any]:
    """Keyword arguments of `pyarrow.parquet.ParquetWriter` for a table of the warehouse.

    Chosen by measuring (`benchmarks/stored_size.py` gives bytes by column): a dictionary pays for everything that
    repeats, but costs on sizes and strides, whose runs zstd sees better in plain; pages of version 1 compress the
    levels of lists and nulls too.
    """
    counted = [name for name, _, _ in table.columns if name in _DELTA]
    named = [name for name, _, _ in table.columns if name in _FRONT_CODED]
    plain = {name for name, type, _ in table.columns if pa.types.is_list(type) and pa.types.is_integer(type.value_type)}
    return {
        "compression": "zstd",
        "compression_level": 15,
        "use_dictionary": [
            f"{name}.list.element" if pa.types.is_list(type) else name
            for name, type, _ in table.columns
            if name not in plain.union(counted, named)
        ],
        "column_encoding": {
            **dict.fromkeys(counted, "DELTA_BINARY_PACKED"),
            **dict.fromkeys(named, "DELTA_BYTE_ARRAY"),
        },
        "write_statistics": [
            name for name, type, _ in table.columns if not pa.types.is_list(type) and name not in _LONG_TEXTS
        ],
        "data_page_size": 1 << 20,
        "version": "2.6",
        "data_page_version": "1.0",
        "store_schema": True,
    }


def conform(rows: pa.Table, table: Table) -> pa.Table:
    """`rows` with the table's columns, types and order of rows. WarehouseError names a column that does not fit."""
    names = [name for name, _, _ in table.columns]
    odd = sorted(set(rows.column_names) ^ set(names))
    if odd:
        raise WarehouseError(
            f"rows for the table {table.name} lack or do not know the column {odd[0]!r}: not published"
        )
    try:
        rows = rows.select(names).cast(table.schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WarehouseError(
            f"rows for the table {table.name} do not fit its columns ({error}): not published"
        ) from error
    for key in table.sort:
        if rows.column(key).null_count:
            raise WarehouseError(f"rows for the table {table.name} hold a null {key!r}: not published")
    order = pc.sort_indices(rows, sort_keys=[(key, "ascending") for key in table.sort])
    return rows.take(order).combine_chunks()


def write(rows: pa.Table, table: Table, sink: IO[bytes]) -> None:
    """Write conformed rows as one Parquet file."""
    with pq.ParquetWriter(sink, table.schema, **parquet_options(table)) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)


class HashingSink:
    """A file that hashes and counts what passes through."""

    def __init__(self, sink: IO[bytes]):
        self._sink, self._hash, self.bytes, self.closed = sink, xxhash.xxh3_128(), 0, False

    def write(self, data: bytes) -> int:
        self._sink.write(data)
        self._hash.update(data)
        self.bytes += len(data)
        return len(data)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        """Leaves the file open: `Storage.settle` closes it."""


def pieces(rows: Rows | Iterable[Rows], table: Table) -> Iterator[pa.Table]:
    """Sorted tables of at most `FILE_ROWS` rows; empty ones left out."""
    parts: Iterable[Rows] = [rows] if isinstance(rows, pa.Table | str | os.PathLike) else rows
    for part in parts:
        if not isinstance(part, pa.Table):
            try:
                part = pq.read_table(part)
            except (pa.ArrowException, OSError) as error:
                raise WarehouseError(f"cannot read the rows of {table.name} in {part}: {error}") from error
        whole = conform(part, table)
        for start in range(0, whole.num_rows, FILE_ROWS):
            yield whole.slice(start, FILE_ROWS)
