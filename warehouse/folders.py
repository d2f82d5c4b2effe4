"""A folder of results that is whole or not there, and never takes the place of anything else.

In go a path and a question (which files did an earlier run leave there?), out comes a hidden sibling to write into.
When the block ends well the sibling takes the folder's name; what a killed run leaves, the next one removes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from warehouse.storage import LocalStorage, WarehouseError, explained


@contextlib.contextmanager
def whole(folder: Path, act: str, result: str, ours: Callable[[Path], set[str]]) -> Iterator[Path]:
    """An empty draft of `folder`, renamed to it at the end; an earlier one is replaced.

    `act` and `result` name the deed and its fruit: export, an export. `ours` gives the paths, relative to a folder,
    that an earlier run wrote there. Raises WarehouseError when the folder holds anything else, another run to it is at
    work, or the disk refuses.
    """
    target = Path(os.path.realpath(folder))
    if target.parent == target or not target.name:
        raise WarehouseError(f"cannot {act} to {target}: give a folder of its own")
    with explained(LocalStorage(target), act):
        _refuse_foreign(target, act, result, ours)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _draft(target, act) as draft:
            yield draft
            _refuse_foreign(target, act, result, ours)  # writing took a while
            _put_in_place(draft, target)


def _hidden(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name[:200]}.{what}")


@contextlib.contextmanager
def _draft(target: Path, act: str) -> Iterator[Path]:
    """An empty folder beside `target` that one process at a time works in; gone afterwards, renamed or not."""
    draft = _hidden(target, "unfinished")
    while True:
        draft.mkdir(exist_ok=True)
        handle = os.open(draft, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # dropped with the process, however it ends
        except BlockingIOError:
            os.close(handle)
            raise WarehouseError(f"another {act} to {target} is running: wait for it, or name another folder") from None
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
    replaced = _hidden(target, "replaced")
    if target.exists() and any(target.iterdir()):
        os.rename(target, replaced)
    LocalStorage(target.parent).move(draft.name, target.name)
    shutil.rmtree(replaced, ignore_errors=True)


def _refuse_foreign(target: Path, act: str, result: str, ours: Callable[[Path], set[str]]) -> None:
    """WarehouseError when `target` is there and is neither empty nor an earlier result with nothing added."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise WarehouseError(f"cannot {act} to {target}: it is a file; name a folder")
    held = set(_files(target))
    if stranger := min(held - ours(target), default=None):
        raise WarehouseError(
            f"cannot {act} to {target}: it holds {stranger[:100]!r}, which is not of {result}; name a new folder"
        )


def _files(folder: Path) -> Iterator[str]:
    """Everything in the folder that is not a folder with something in it, by relative path."""
    for root, folders, files in os.walk(folder):
        for name in (*files, *(f for f in folders if os.path.islink(os.path.join(root, f)))):
            yield os.path.relpath(os.path.join(root, name), folder)
