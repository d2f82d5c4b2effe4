"""A release on disk: `<table>/train-00000-of-00003.parquet`, `croissant.json` and `README.md`.

In go a warehouse and a snapshot, out comes a folder that is whole or not there. The shards are the snapshot's own
immutable files, copied block by block and checked against their hashes, so equal snapshots give equal shards and
memory does not grow with the data. The folder is whole or not there (warehouse/folders.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import xxhash

from warehouse.checks import readable
from warehouse.folders import whole
from warehouse.manifest import DataFile
from warehouse.release import croissant
from warehouse.release.card import card
from warehouse.release.contents import Contents, Shard, contents
from warehouse.schema import TABLES
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import LocalStorage, Storage, WarehouseError

CARD, CROISSANT = "README.md", "croissant.json"
BLOCK = 8 << 20
_LARGEST_CROISSANT = 256 << 20


def release(warehouse: Warehouse, snapshot: Snapshot, connection: Any, folder: Path) -> Contents:
    """Write a snapshot to `folder`, which is missing, empty, or an earlier release and nothing else (it is replaced).

    Measured tables (clock readings) and empty ones are left out. Raises WarehouseError when the folder holds anything
    else, another release to it is at work, a file of the snapshot is damaged, or the disk refuses.
    """
    with whole(folder, "export", "an export", _released) as draft:
        sink = LocalStorage(draft)
        shards = {}
        for name, table in TABLES.items():
            files = snapshot.tables[name].files if name in snapshot.tables else ()
            held = [file for file in files if file.rows]
            if held and not table.measured:
                shards[name] = tuple(_copy(warehouse.storage, sink, name, i, held) for i in range(len(held)))
        if not shards:
            raise WarehouseError(f"snapshot {snapshot.sequence} of {warehouse.storage.url} has no rows to export")
        found = contents(connection, snapshot, shards)
        _write(sink, CROISSANT, json.dumps(croissant.metadata(found), indent=1) + "\n")
        _write(sink, CARD, card(found))
    return found


def _copy(source: Storage, sink: LocalStorage, table: str, number: int, files: list[DataFile]) -> Shard:
    file = files[number]
    path = f"{table}/train-{number:05d}-of-{len(files):05d}.parquet"
    sink.make_folder(table)
    content, digest, size = xxhash.xxh3_128(), hashlib.sha256(), 0
    with sink.create(path) as copy:
        for block in _blocks(source, file.path):
            content.update(block)
            digest.update(block)
            copy.write(block)
            size += len(block)
        sink.settle(copy)
    if content.hexdigest() != file.hash:
        raise WarehouseError(
            f"the file {source.address(file.path)} was changed or is cut short: restore it, or export an older "
            "snapshot with --snapshot (`passnet snapshots` lists them)"
        )
    return Shard(path, file.rows, size, digest.hexdigest())


def _blocks(source: Storage, path: str) -> Iterator[bytes]:
    with readable(source, path) as stream:
        while block := stream.read(BLOCK):
            yield block


def _write(sink: LocalStorage, path: str, text: str) -> None:
    file: IO[bytes] = sink.create(path)
    with file:
        file.write(text.encode())
        sink.settle(file)


def _released(folder: Path) -> set[str]:
    """Paths that the folder's own Croissant metadata names, itself and the card included; none where there is none."""
    try:
        if (folder / CROISSANT).stat().st_size > _LARGEST_CROISSANT or not (folder / CARD).is_file():
            return set()
        described = json.loads((folder / CROISSANT).read_bytes())
        if described["name"] != croissant.NAME:
            return set()
        return {CARD, CROISSANT, *(str(d["contentUrl"]) for d in described["distribution"] if "contentUrl" in d)}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
