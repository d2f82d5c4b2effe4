"""Finished cuts that no snapshot holds yet, one file each: what makes decomposing resumable.

    cutting/<first 2 hex digits>/<id>.parquet

As with staged captures (warehouse/staging.py), the rows are the nodes of the subgraphs, and those of the other tables
stand in the metadata as JSON; a file appears by one rename of durable bytes, and goes once a snapshot holds its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.schema import NODES, TABLES
from warehouse.storage import TEMPORARY, Storage, durable, explained

FOLDER = "cutting"
#: Tables whose rows travel in the metadata.
HEADER_TABLES = ("decompositions", "subgraphs", "subgraph_occurrences", "subgraph_failures")
_KEY = b"passnet.cut"

Rows = dict[str, list[dict[str, Any]]]


class CutDamaged(Exception):
    """A finished cut's file is not whole: the cut must be made again."""


def path_of(identity: str) -> str:
    return f"{FOLDER}/{identity[:2]}/{identity}.parquet"


def write(storage: Storage, identity: str, rows: Mapping[str, list[dict[str, Any]]], nodes: pa.Table) -> None:
    """Make a cut durable. WarehouseError when the warehouse cannot be written."""
    header = json.dumps({name: rows.get(name, []) for name in HEADER_TABLES})
    table = nodes.replace_schema_metadata({**(NODES.schema.metadata or {}), _KEY: header.encode()})
    with durable(storage, path_of(identity), "stage a cut") as sink:
        pq.write_table(table, sink, compression="zstd", compression_level=1, write_page_checksum=True)


def finished(storage: Storage) -> set[str]:
    """Ids of all finished cuts."""
    return {
        name.removesuffix(".parquet")
        for part in storage.list(FOLDER)
        if not part.startswith(TEMPORARY)
        for name in storage.list(f"{FOLDER}/{part}")
        if name.endswith(".parquet")
    }


def read(storage: Storage, identity: str) -> tuple[dict[str, pa.Table], pa.Table]:
    """(tables of the header, node rows). CutDamaged for a file that is not whole, WarehouseError for the disk."""
    with explained(storage, f"read cut {identity}"):
        stream = storage.read(path_of(identity))
    with stream:
        try:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            rows = json.loads((file.schema_arrow.metadata or {})[_KEY])
            tables = {name: pa.Table.from_pylist(rows[name], TABLES[name].schema) for name in HEADER_TABLES}
            return tables, file.read(columns=NODES.schema.names).cast(NODES.schema)
        except (OSError, pa.ArrowException, ValueError, TypeError, LookupError, AttributeError) as error:
            raise CutDamaged(f"cut {identity} is not whole: {error}") from error


def remove(storage: Storage, identities: Iterable[str]) -> None:
    for identity in identities:
        storage.remove(path_of(identity))
