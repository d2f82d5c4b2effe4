"""Raw times of one callable in the worker: by the host's clock, by the device's. The judge makes medians of them.

The functions that read clocks are taken when this file is imported, before any submission is. A clock read here can
still be forged by native code; the judge's own wall clock around each block bounds by how much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from evaluate.measure import graphs
from evaluate.measure.device import Device, open_device
from evaluate.measure.timing import steady

_clock = time.perf_counter
_synchronize = torch.cuda.synchronize
_opened: dict[str, Device] = {}
#: Calls in one recorded graph.
REPEATS = 10


def taken(call: Callable[[], Any], clock: str, samples: int, kind: str) -> dict[str, Any]:
    """{"seconds": [...], "throttled": bool}. clock: `warm` (calls that are not timed), `host`, `device`, `empty` (the
    host protocol around nothing, to know what it costs by itself)."""
    device = _opened.get(kind) or _opened.setdefault(kind, open_device(kind))
    if clock == "device":
        try:
            found = graphs.replays({"call": call}, device, REPEATS, samples)["call"]
        except graphs.NotCapturable as error:
            return {"seconds": [], "throttled": False, "not_capturable": str(error)[:200]}
        return {
            "seconds": [found.median_us / 1e6] * found.samples,
            "spread": found.spread,
            "throttled": found.dropped > 0,
        }
    timed: list[float] = []
    held_back = device.throttled()
    with steady():
        for _ in range(samples):
            if clock != "warm":
                device.flush()
            device.synchronize()
            start = _clock()
            if clock != "empty":
                call()
            device.synchronize()
            timed.append(_clock() - start)
    return {"seconds": [] if clock == "warm" else timed, "throttled": held_back or device.throttled()}
