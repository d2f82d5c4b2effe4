"""Two clocks around a call: the host's, end to end, and the device's, by events. Interleaved, counted, summarised.

In go named calls (the arms of a comparison), out comes a `Timing` of each. Every protocol here
- runs a fixed number of calls, whatever the noise;
- takes the arms in turns, A B B A A B B A, so that drift of clocks and temperature falls on both alike;
- flushes the L2 cache before every timed call;
- waits for the whole device, not a stream;
- drops the samples of a block at whose beginning or end the device says that it is throttled.

`host`: synchronise, read the clock, call, synchronise, read the clock. It is what a user waits for: guards, wrapper,
launches and kernels. `events`: flush, event, call, event, one after another without waiting: the device's time from the
first kernel to the last, with the gaps that a slow host leaves between them. `evaluate.measure.graphs` gives the third
clock, the device's work alone.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from evaluate.measure.device import Device

Call = Callable[[], object]
#: Taken before anything else is imported here that could replace it.
_clock = time.perf_counter
#: Turns that each arm gets; even, so that both orders occur equally often.
TURNS = 4


@dataclass(frozen=True, slots=True)
class Timing:
    """median_us: microseconds. spread: interquartile range / median. samples: how many were kept; both are NaN for 0.
    dropped: how many were taken while the device was throttled."""

    median_us: float
    spread: float
    samples: int
    dropped: int


def summarise(seconds: Sequence[float], dropped: int = 0) -> Timing:
    """Median and spread of samples in seconds; NaN when none were kept."""
    if not seconds:
        return Timing(float("nan"), float("nan"), 0, dropped)
    median = statistics.median(seconds)
    if len(seconds) < 2 or median <= 0:
        return Timing(median * 1e6, 0.0, len(seconds), dropped)
    low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Timing(median * 1e6, (high - low) / median, len(seconds), dropped)


def turns(names: Iterable[str], count: int = TURNS) -> Iterator[str]:
    """The arms in turns: A B, B A, A B, B A."""
    order = list(names)
    for turn in range(count):
        yield from order if turn % 2 == 0 else order[::-1]


@contextmanager
def steady() -> Iterator[None]:
    """No garbage collection while the clock runs."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def host(arms: Mapping[str, Call], device: Device, samples: int) -> dict[str, Timing]:
    """End-to-end time of each arm by the host's clock, `samples` calls each (a multiple of TURNS)."""

    def block(call: Call, count: int) -> list[float]:
        taken = []
        for _ in range(count):
            device.flush()
            device.synchronize()
            start = _clock()
            call()
            device.synchronize()
            taken.append(_clock() - start)
        return taken

    return _interleaved(arms, device, samples, block)


def events(arms: Mapping[str, Call], device: Device, samples: int) -> dict[str, Timing]:
    """Time of each arm between two CUDA events around it, calls queued back to back. CUDA only."""

    def block(call: Call, count: int) -> list[float]:
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        for before, after in marks:
            device.flush()
            before.record()
            call()
            after.record()
        device.synchronize()
        return [before.elapsed_time(after) / 1e3 for before, after in marks]

    return _interleaved(arms, device, samples, block)


def _interleaved(
    arms: Mapping[str, Call], device: Device, samples: int, block: Callable[[Call, int], list[float]]
) -> dict[str, Timing]:
    kept: dict[str, list[float]] = {name: [] for name in arms}
    dropped = dict.fromkeys(arms, 0)
    with steady():
        for name in turns(arms):
            held_back = device.throttled()
            taken = block(arms[name], samples // TURNS)
            if held_back or device.throttled():
                dropped[name] += len(taken)
            else:
                kept[name] += taken
    return {name: summarise(kept[name], dropped[name]) for name in arms}
