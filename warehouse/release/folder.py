"""A release on disk: `<table>/train-00000-of-00003.parquet`, `croissant.json` and `README.md`.

In go a warehouse and a snapshot, out comes a folder that is whole or not there. The shards are the snapshot's own
immutable files, copied block by block and checked against their hashes, so equal snapshots give equal shards and
memory does not grow with the data. Everything is written into a hidden sibling, durable, and renamed at the end; what
a killed export leaves there, the next one to the same place removes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import xxhash

from warehouse.checks import readable
from warehouse.manifest import DataFile
from warehouse.release import croissant
from warehouse.release.card import card
from warehouse.release.contents import Contents, Shard, contents
from warehouse.schema import TABLES
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import LocalStorage, Storage, WarehouseError, explained

CARD, CROISSANT = "README.md", "croissant.json"
BLOCK = 8 << 20
_LARGEST_CROISSANT = 256 << 20


def release(warehouse: Warehouse, snapshot: Snapshot, connection: Any, folder: Path) -> Contents:
    """Write a snapshot to `folder`, which is missing, empty, or an earlier release and nothing else (it is replaced).

    Measured tables (clock readings) and empty ones are left out. Raises WarehouseError when the folder holds anything
    else, another release to it is at work, a file of the snapshot is damaged, or the disk refuses.
    """
    target = Path(os.path.realpath(folder))
    if target.parent == target or not target.name:
        raise WarehouseError(f"cannot export to {target}: give a folder of its own")
    with explained(LocalStorage(target), "export"):
        _refuse_foreign(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _draft(target) as draft:
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
            _put_in_place(draft, target)
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


# ---------------------------------------------------------------- one folder, whole or not there


def _hidden(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name[:200]}.{what}")


@contextlib.contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """An empty folder beside `target` that one process at a time works in; gone afterwards, renamed or not."""
    draft = _hidden(target, "unfinished")
    while True:
        draft.mkdir(exist_ok=True)
        handle = os.open(draft, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # dropped with the process, however it ends
        except BlockingIOError:
            os.close(handle)
            raise WarehouseError(
                f"another export to {target} is running: wait for it, or name another folder"
            ) from None
        # The one before may have renamed or removed the folder between our two steps: what is locked must be there.
        if draft.is_dir() and os.path.samestat(os.fstat(handle), os.stat(draft)):
            break
        os.close(handle)
    try:
        shutil.rmtree(_hidden(target, "replaced"), ignore_errors=True)
        for entry in os.scandir(draft):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
        yield draft
    finally:
        if draft.is_dir() and os.path.samestat(os.fstat(handle), os.stat(draft)):
            shutil.rmtree(draft, ignore_errors=True)
        os.close(handle)


def _put_in_place(draft: Path, target: Path) -> None:
    _refuse_foreign(target)  # copying took a while
    replaced = _hidden(target, "replaced")
    if target.exists() and any(target.iterdir()):
        os.rename(target, replaced)
    LocalStorage(target.parent).move(draft.name, target.name)
    shutil.rmtree(replaced, ignore_errors=True)


def _refuse_foreign(target: Path) -> None:
    """WarehouseError when `target` is there and is neither empty nor an earlier release with nothing added."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise WarehouseError(f"cannot export to {target}: it is a file; name a folder")
    held = set(_files(target))
    if stranger := min(held - _released(target), default=None):
        raise WarehouseError(
            f"cannot export to {target}: it holds {stranger[:100]!r}, which is not of an export; name a new folder"
        )


def _files(folder: Path) -> Iterator[str]:
    """Everything in the folder that is not a folder with something in it, by relative path."""
    for root, folders, files in os.walk(folder):
        for name in (*files, *(f for f in folders if os.path.islink(os.path.join(root, f)))):
            yield os.path.relpath(os.path.join(root, name), folder)


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
