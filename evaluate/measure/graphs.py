"""The device's work alone: calls recorded into a CUDA graph and replayed, without the host in between.

In go named calls, out comes a `Timing` of each, or the reason why it cannot be recorded. One graph holds
`repeats` times (flush L2, call); another holds the flushes alone. They are replayed in turns, and the difference,
divided by `repeats`, is one sample. The difference charges a call with exactly its own traffic: dirty lines of the
flush that it writes out are missing from the next flush, and its own dirty lines are paid for there.

`count_operations` records one call and counts the nodes of its graph through the driver's own functions
(cuGraphGetNodes, cuGraphNodeGetType: CUDA Driver API, "Graph Management"): kernels whoever launched them, and copies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from evaluate.measure.device import Device
from evaluate.measure.timing import Call, Timing, steady, summarise

_KERNEL, _MEMCPY, _MEMSET = 0, 1, 2  # CUgraphNodeType


class NotCapturable(Exception):
    """A call that cannot be recorded into a CUDA graph: it waits for the device, say. One line."""


@dataclass(frozen=True, slots=True)
class Operations:
    """What one call puts on the device: kernels, and memory copies or fills."""

    kernels: int
    copies: int


def record(
    call: Call, device: Device, repeats: int = 1, flush: bool = False, keep: bool = False
) -> torch.cuda.CUDAGraph:
    """`repeats` calls, each after a flush if asked, as one CUDA graph. Raises NotCapturable.

    torch's own context manager is not used: it collects garbage at every entry, which takes longer than everything
    else here. The call must have run before, so that nothing is compiled or loaded during the recording.
    """
    graph = torch.cuda.CUDAGraph(keep_graph=True) if keep else torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            device.synchronize()
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(repeats):
                    if flush:
                        device.flush()
                    call()
            finally:
                graph.capture_end()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise NotCapturable(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    finally:
        torch.cuda.current_stream().wait_stream(stream)
    return graph


def count_operations(call: Call, device: Device) -> Operations:
    """Kernels and copies of one call. Raises NotCapturable."""
    graph = record(call, device, keep=True)
    driver = ctypes.CDLL("libcuda.so.1")
    handle = ctypes.c_void_p(graph.raw_cuda_graph())
    count = ctypes.c_size_t()
    if driver.cuGraphGetNodes(handle, None, ctypes.byref(count)) != 0:
        raise NotCapturable("the driver does not list the graph's nodes")
    nodes = (ctypes.c_void_p * count.value)()
    if count.value and driver.cuGraphGetNodes(handle, nodes, ctypes.byref(count)) != 0:
        raise NotCapturable("the driver does not list the graph's nodes")
    kinds = []
    for node in nodes:
        kind = ctypes.c_int()
        driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind))
        kinds.append(kind.value)
    return Operations(kinds.count(_KERNEL), kinds.count(_MEMCPY) + kinds.count(_MEMSET))


def replays(arms: Mapping[str, Call], device: Device, repeats: int, samples: int) -> dict[str, Timing]:
    """Device time of one call of each arm, from `samples` replays of `repeats` calls. Raises NotCapturable."""
    recorded = {"": record(lambda: None, device, repeats, flush=True)}
    for name, call in arms.items():
        recorded[name] = record(call, device, repeats, flush=True)
    marks: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in recorded}
    with steady():
        for graph in recorded.values():
            graph.replay()
        device.synchronize()
        held_back = device.throttled()
        for _ in range(samples):
            for name, graph in recorded.items():
                before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                before.record()
                graph.replay()
                after.record()
                marks[name].append((before, after))
        device.synchronize()
        held_back = held_back or device.throttled()
    taken = {name: [before.elapsed_time(after) / 1e3 for before, after in pairs] for name, pairs in marks.items()}
    result: dict[str, Timing] = {}
    for name in arms:
        each = [max(a - b, 0.0) / repeats for a, b in zip(taken[name], taken[""], strict=True)]
        result[name] = summarise([], len(each)) if held_back else summarise(each)
    return result
