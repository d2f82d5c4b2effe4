"""The examination behind `passnet doctor`: each check says what was found, and how to mend what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from warehouse.storage import LocalStorage, WarehouseError, open_storage

#: Free space below which a refresh of a few thousand models may not fit.
LITTLE_DISK = 2 << 30
#: Memory that two capture workers at their cap want.
LITTLE_MEMORY = 4 << 30
INSTALL = "make the environment again: `rm .venv/ready && make demo`"


@dataclass(frozen=True, slots=True)
class Check:
    """state: ok; note (works, but read it); missing (a refresh cannot run)."""

    name: str
    state: str
    found: str
    mend: str = ""


def examine(warehouse: str) -> list[Check]:
    """Every check, in the order shown."""
    return [*_versions(), *_machine(), _device(), *_warehouse(warehouse), *_isolation()]


def _versions() -> Iterator[Check]:
    version = platform.python_version()
    new_enough = sys.version_info >= (3, 11)
    yield Check("python", "ok" if new_enough else "missing", version, "" if new_enough else "use Python 3.11 or newer")
    for text in metadata.requires("passnet") or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            yield Check(wanted.name, "missing", "not installed", INSTALL)
            continue
        fits = wanted.specifier.contains(found.split("+")[0], prereleases=True)
        yield Check(
            wanted.name, "ok" if fits else "missing", found, "" if fits else f"needs {wanted.specifier}: {INSTALL}"
        )


def _machine() -> Iterator[Check]:
    import psutil

    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory()
    enough = memory.available >= LITTLE_MEMORY
    found = f"{cores} cores, {memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free"
    yield Check("machine", "ok" if enough else "note", found, "" if enough else "use --workers 1")


def _device() -> Check:
    import torch

    if not torch.cuda.is_available():
        return Check("device", "ok", "no GPU", "none is needed: graphs are traced for CUDA with fake tensors")
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Check("device", "ok", f"{', '.join(names)}; CUDA {torch.version.cuda}")


def _warehouse(url: str) -> Iterator[Check]:
    from warehouse.snapshot import Warehouse

    try:
        storage = open_storage(url)
    except WarehouseError as error:
        yield Check("warehouse", "missing", url, str(error))
        return
    if isinstance(storage, LocalStorage):
        place = next(p for p in (storage.root, *storage.root.parents) if p.exists())
        free = shutil.disk_usage(place).free
        plenty = free >= LITTLE_DISK
        yield Check(
            "disk",
            "ok" if plenty else "note",
            f"{free / 2**30:.1f} GiB free at {place}",
            "" if plenty else "free some space, or `passnet snapshots prune --keep 1 --yes`",
        )
        if not os.access(place, os.W_OK | os.X_OK) or not Path(place).is_dir():
            yield Check(
                "warehouse", "missing", f"{place} is not writable", "check its permissions, or give --warehouse"
            )
            return
    try:
        held = Warehouse.open(url)
        snapshot = held.latest()
        if snapshot is not None:
            held.check(snapshot, contents=True)
    except WarehouseError as error:
        state = "note" if "run `passnet refresh` first" in str(error) else "missing"
        yield Check("warehouse", state, str(error).split(":")[0], str(error))
        return
    found = f"snapshot {snapshot.sequence}, {snapshot.rows('graphs')} graphs" if snapshot else "empty"
    yield Check("warehouse", "ok", found)


def _isolation() -> Iterator[Check]:
    from extract.processes import containment

    for layer, active in containment().items():
        mend = "" if active else "not offered by this kernel or user: captures run without it"
        yield Check(f"isolation: {layer}", "ok" if active else "note", "active" if active else "inactive", mend)
    from evaluate.judge.workers import CannotStart
    from evaluate.judge.workers import containment as of_workers
    from evaluate.worker.sandbox import LAYERS

    try:
        held = set(of_workers())
    except CannotStart as error:
        yield Check("judging", "note", "workers do not start", str(error))
        return
    for layer in LAYERS:
        mend = (
            "" if layer in held else "not offered by this kernel or user: results name the layers they were made with"
        )
        state = "ok" if layer in held else "note"
        yield Check(f"judging: {layer}", state, "active" if layer in held else "inactive", mend)
