"""A profiling worker: one process that compiles a subgraph beside others, then measures it alone on the device.

In go hashes over a channel, out comes one row of `profiles` each. What a subgraph raises becomes a class; a device
whose context is broken ends the worker, since nothing in this process will run again.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from curate.profile import clocks, judge, subject
from curate.profile.inductor import Compiled, compile_ahead
from curate.profile.items import Items
from curate.profile.results import blank
from evaluate.measure.device import Device, NoDevice, open_device
from evaluate.measure.floor import Copies, measure_copies
from warehouse.graph.literals import dumps
from warehouse.graph.record import GraphRecord, RecordError

_PR_SET_PDEATHSIG = 1
#: Subgraphs between two collections of garbage: Dynamo leaves cycles behind, and a collection takes a while.
COLLECT_EVERY = 8
#: Device memory that a worker may keep for its next subgraph.
KEPT_BYTES = 2**32


@dataclass(frozen=True, slots=True)
class Settings:
    """device: cpu or cuda. mode: of torch.compile. log: file for what workers print; None leaves it where it is.
    copies: the device's table, None for the worker that makes it."""

    device: str
    mode: str = "default"
    seed: int = 0
    log: str | None = None
    copies: Copies | None = None


def serve(channel: Connection, items: Items, settings: Settings) -> None:
    """Answer hashes with rows until the channel closes. First says `up` with the origin, or `no_device`."""
    os.setsid()  # compilers that it starts end with it
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if settings.log is not None:
        log = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(log, stream)
    torch.set_num_threads(1 if settings.device == "cuda" else len(os.sched_getaffinity(0)))
    try:
        device = open_device(settings.device)
        copies = settings.copies
        if copies is None and device.is_cuda:
            with device.lock():
                copies = measure_copies(device)
    except (NoDevice, RuntimeError) as error:
        _send(channel, {"no_device": judge.first_line(error) if not isinstance(error, NoDevice) else str(error)})
        return
    _send(channel, {"up": asdict(device.origin), "copies": copies.points if copies else None})
    done = 0
    while True:
        try:
            subgraph_hash = channel.recv_bytes().decode()
        except EOFError:
            return
        row, broken = profile(
            subgraph_hash, items, device, copies, settings, lambda stage: _send(channel, {"stage": stage})
        )
        _send(channel, {"row": row, "replace": broken})
        if broken:
            return
        done += 1
        if done % COLLECT_EVERY == 0:
            gc.collect()


def profile(
    subgraph_hash: str,
    items: Items,
    device: Device,
    copies: Copies | None,
    settings: Settings,
    entered: Callable[[str], None] = lambda stage: None,
) -> tuple[dict[str, Any], bool]:
    """One row, whatever the subgraph does short of ending the process; and whether the device's context is broken.

    `entered` is told each stage: record, compile, wait (for the device lock), measure.
    """
    row = {**blank(subgraph_hash, settings.mode), **asdict(device.origin), "seed": settings.seed}
    stage = "record"

    def enter(name: str) -> None:
        nonlocal stage
        stage = name
        entered(name)

    broken = False
    try:
        _fill(row, items.record(subgraph_hash), device, copies, settings, enter)
        row["class"] = "ok"
    except Exception as error:  # one subgraph costs itself alone
        klass, detail = classify(error, stage)
        broken = device.is_cuda and _broken()
        row |= {"class": "device_error" if broken else klass, "stage": stage, "detail": detail}
    torch._dynamo.reset()
    return row, broken


def classify(error: Exception, stage: str) -> tuple[str, str]:
    """Class and first line of what a subgraph raised in a stage."""
    detail = judge.first_line(error)
    if isinstance(error, judge.Refused):
        return error.klass, str(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "out of memory" in detail.lower():
        return "out_of_memory", detail
    if isinstance(error, subject.TooLarge):
        return "too_large", detail
    if isinstance(error, RecordError) or stage == "record":
        return "record_invalid", detail
    return ("compile_error" if stage == "compile" else "inductor_error"), detail


def _fill(
    row: dict[str, Any],
    record: GraphRecord,
    device: Device,
    copies: Copies | None,
    settings: Settings,
    enter: Callable[[str], None],
) -> None:
    enter("record")
    made = subject.make(record, device.kind, settings.seed)
    if made.moved is not None:
        row |= {"bytes_read": made.moved.read, "bytes_written": made.moved.written}
    enter("compile")
    compiled = compile_ahead(made.module, made.record, made.examples(device.kind), settings.mode)
    row |= _compilation(compiled)
    enter("wait")
    with device.lock(), torch.no_grad():
        enter("measure")
        try:
            row |= judge.judged(made, compiled.call, device.kind)
            eager = subject.placed(made.drawn["recipe"], device.kind)
            fused = subject.placed(made.drawn["recipe"], device.kind)
            arms: dict[str, clocks.Call] = {
                "eager": lambda: made.module(*eager),
                "inductor": lambda: compiled.call(*fused),
            }
            row |= clocks.clocked(arms, device, copies, made.moved)
        finally:
            eager = fused = []
            # Memory of recorded graphs goes back only so; done rarely, since the next subgraph has to ask for it anew.
            if device.is_cuda and torch.cuda.memory_reserved() > KEPT_BYTES:
                torch.cuda.empty_cache()


def _compilation(compiled: Compiled) -> dict[str, Any]:
    groups = [{"kind": group.kind, "rows": list(group.rows)} for group in compiled.groups]
    return {
        "compile_seconds": compiled.seconds,
        "scheduler_kernels": compiled.count("kernel"),
        "extern_kernels": compiled.count("extern"),
        "groups": dumps(groups),
    }


def _broken() -> bool:
    """Whether the CUDA context refuses to go on: errors such as an illegal access stay until the process ends."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _send(channel: Connection, message: dict[str, Any]) -> None:
    channel.send_bytes(dumps(message).encode())
