"""Whether a data file is the one that was published: there, whole, of the right table, unchanged.

In go a storage and what a manifest says of a file, out comes nothing, or a WarehouseError that names file and mend.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from warehouse.manifest import DataFile
from warehouse.schema import Table
from warehouse.storage import Storage, WarehouseError

_OLDER = "read an older snapshot with --snapshot (`passnet snapshots` lists them)"


def check_file(storage: Storage, file: DataFile, table: Table, contents: bool = False) -> None:
    """WarehouseError when the file is missing, cut short, foreign or (`contents`) changed."""
    where = storage.address(file.path)
    size = storage.size(file.path)
    if size is None:
        raise WarehouseError(f"the file {where} is missing: restore it, or {_OLDER}")
    if file.bytes is not None and size != file.bytes:
        raise WarehouseError(f"the file {where} has {size} bytes instead of {file.bytes}: restore it, or {_OLDER}")
    with readable(storage, file.path) as stream:
        metadata = pq.read_metadata(stream)
        if metadata.num_rows != file.rows:
            raise WarehouseError(f"the file {where} is not the one that was published: restore it, or {_OLDER}")
        names = metadata.schema.to_arrow_schema().names
        if names != table.schema.names:
            odd = sorted(set(names) ^ set(table.schema.names))
            raise WarehouseError(
                f"the file {where} is not a file of the table {table.name} as this passnet knows it (columns that "
                f"differ: {', '.join(odd[:4]) or 'their order'}): restore it, or refresh into a new warehouse"
            )
        if contents and file.hash is not None:
            stream.seek(0)
            if xxhash.xxh3_128_hexdigest(stream.read()) != file.hash:
                raise WarehouseError(f"the file {where} was changed: restore it, or {_OLDER}")


@contextlib.contextmanager
def readable(storage: Storage, path: str) -> Iterator[IO[bytes]]:
    """A data file opened for reading; what goes wrong while it is read becomes a WarehouseError that names it."""
    try:
        with storage.read(path) as stream:
            yield stream
    except (pa.ArrowException, OSError) as error:
        where = storage.address(path)
        detail = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise WarehouseError(
            f"the file {where} is not a whole Parquet file ({detail}): restore it, or {_OLDER}"
        ) from error
