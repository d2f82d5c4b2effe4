"""Times, kernels and memory of one subgraph on its device, eager against Inductor.

In go two callables with inputs of their own, out come columns of `profiles`. Runs under the device lock. Counts are
fixed by a ladder over the first estimate, so that a run of many subgraphs has a known length:

    one eager call takes    host samples    event samples    warm-up calls    calls in a graph
    less than 1 ms          60              60               10               10
    less than 10 ms         20              20               3                2
    more                    8               8                1                1

and 12 replays of each graph. On a CPU only the host's clock is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from evaluate.measure import graphs, timing
from evaluate.measure.device import Device
from evaluate.measure.floor import Copies, Moved
from evaluate.measure.timing import Timing

Call = Callable[[], object]
#: (below this many microseconds, host samples, event samples, warm-up calls, calls in a graph)
LADDER = ((1_000.0, 60, 60, 10, 10), (10_000.0, 20, 20, 3, 2), (float("inf"), 8, 8, 1, 1))
REPLAYS = 12
#: Inductor counts as slower from this ratio on: below, two runs would not agree on it.
SLOWER = 1.02


def clocked(arms: dict[str, Call], device: Device, copies: Copies | None, moved: Moved | None) -> dict[str, Any]:
    """Columns of `profiles` from the first warm-up to the cause. `arms`: eager and inductor."""
    columns: dict[str, Any] = {}
    if device.is_cuda:
        for name, call in arms.items():
            columns[f"{name}_peak_bytes"] = _peak(call, device)
    arms["eager"]()
    estimate = timing.host({"eager": arms["eager"]}, device, timing.TURNS)["eager"].median_us
    _, host_samples, event_samples, warm, repeats = next(
        row for row in LADDER if math.isnan(estimate) or estimate < row[0]
    )
    for call in arms.values():
        for _ in range(warm):
            call()
    device.synchronize()
    dropped = _fill(columns, "host", timing.host(arms, device, host_samples))
    if device.is_cuda:
        dropped += _fill(columns, "events", timing.events(arms, device, event_samples))
        dropped += _recorded(columns, arms, device, repeats)
        _floor(columns, copies, moved)
        _read_clocks(columns, device)
    columns["dropped_samples"] = dropped
    columns["cause"] = cause(columns)
    return columns


def cause(row: dict[str, Any]) -> str | None:
    """`host` when Inductor is slower end to end though its device work is not, `device` when only its device work is,
    `both`, or `none`. Without a device clock (on a CPU) the host's is all there is."""
    host = _slower(row, "host")
    device = _slower(row, "device")
    if device is None:
        device = _slower(row, "events") if row.get("not_capturable") else None
    if host is None and device is None:
        return None
    return {(True, True): "both", (True, False): "host", (False, True): "device"}.get(
        (bool(host), bool(device)), "none"
    )


def _slower(row: dict[str, Any], clock: str) -> bool | None:
    eager, fused = row.get(f"eager_{clock}_us"), row.get(f"inductor_{clock}_us")
    return None if eager is None or fused is None else fused > eager * SLOWER


def _fill(columns: dict[str, Any], clock: str, timings: dict[str, Timing]) -> int:
    """Write one clock's columns; returns how many samples were dropped."""
    columns[f"{clock}_samples"] = min(found.samples for found in timings.values())
    for name, found in timings.items():
        if found.samples:
            columns[f"{name}_{clock}_us"] = found.median_us
            columns[f"{name}_{clock}_spread"] = found.spread
    return sum(found.dropped for found in timings.values())


def _recorded(columns: dict[str, Any], arms: dict[str, Call], device: Device, repeats: int) -> int:
    """Count of kernels and device work alone; the reason when the calls cannot be recorded."""
    try:
        counts = {name: graphs.count_operations(call, device) for name, call in arms.items()}
        columns["counted_by"] = "graph"
    except graphs.NotCapturable:
        counts = {name: _profiled(call, device) for name, call in arms.items()}
        columns["counted_by"] = "profiler"
    for name, counted in counts.items():
        columns[f"{name}_kernels"], columns[f"{name}_copies"] = counted.kernels, counted.copies
    try:
        timings = graphs.replays(arms, device, repeats, REPLAYS)
    except graphs.NotCapturable as error:
        columns["not_capturable"] = str(error)[:300]
        return 0
    columns["device_repeats"] = repeats
    return _fill(columns, "device", timings)


def _profiled(call: Call, device: Device) -> graphs.Operations:
    """Kernels, and copies or fills, of one call as CUPTI saw them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        call()
        device.synchronize()
    names = [e.name for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    copies = sum(name.startswith(("Memcpy", "Memset")) for name in names)
    return graphs.Operations(len(names) - copies, copies)


def _peak(call: Call, device: Device) -> int:
    """Most memory allocated during a call beyond what was there: outputs and temporaries. The second of two calls:
    the first may allocate workspaces that stay."""
    call()
    device.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    device.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _floor(columns: dict[str, Any], copies: Copies | None, moved: Moved | None) -> None:
    if copies is None:
        return
    columns["copy_gbps"], columns["launch_us"] = copies.bandwidth_gbps, copies.launch_us
    if moved is None:
        return
    columns["floor_us"] = copies.floor_us(moved.total)
    if (fused := columns.get("inductor_device_us")) and columns.get("inductor_kernels"):
        columns["headroom"] = fused / columns["floor_us"]


def _read_clocks(columns: dict[str, Any], device: Device) -> None:
    if (now := device.clocks()) is not None:
        columns |= {
            "sm_mhz": now.sm_mhz,
            "memory_mhz": now.memory_mhz,
            "throttle": now.throttle,
            "temperature_c": now.temperature_c,
        }
