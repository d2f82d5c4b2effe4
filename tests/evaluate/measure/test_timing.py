"""The timing protocol's promises: turns, fixed counts, flushes before every call, throttled samples dropped."""

from __future__ import annotations

import gc
import math

import pytest

from evaluate.measure import timing
from evaluate.measure.device import open_device


class Scripted:
    """A device that notes what is asked of it; `throttled` answers from a script, then False."""

    def __init__(self, *throttled: bool):
        self.log: list[str] = []
        self._throttled = list(throttled)

    def flush(self) -> None:
        self.log.append("flush")

    def synchronize(self) -> None:
        self.log.append("wait")

    def throttled(self) -> bool:
        return self._throttled.pop(0) if self._throttled else False


def test_arms_take_turns_in_both_orders():
    assert "".join(timing.turns("AB")) == "ABBAABBA"


def test_every_timed_call_starts_on_a_flushed_and_idle_device_and_ends_on_an_idle_one():
    device = Scripted()
    timing.host({"A": lambda: device.log.append("A"), "B": lambda: device.log.append("B")}, device, 8)
    calls = [["flush", "wait", name, "wait"] for name in "AABBBBAAAABBBBAA"]
    assert device.log == [word for call in calls for word in call]


def test_the_number_of_calls_is_fixed():
    calls = []
    found = timing.host({"A": lambda: calls.append(1)}, open_device("cpu"), 20)
    assert len(calls) == found["A"].samples == 20 and found["A"].dropped == 0


@pytest.mark.parametrize("script", [(True, False), (False, True)])
def test_samples_of_a_block_that_begins_or_ends_throttled_are_dropped(script):
    found = timing.host({"A": lambda: None, "B": lambda: None}, Scripted(*script), 40)
    assert (found["A"].samples, found["A"].dropped) == (30, 10)
    assert (found["B"].samples, found["B"].dropped) == (40, 0)


def test_nothing_is_made_up_when_every_sample_was_dropped():
    found = timing.host({"A": lambda: None}, Scripted(*[True] * 8), 8)["A"]
    assert found.samples == 0 and found.dropped == 8 and math.isnan(found.median_us)


def test_median_and_spread_are_those_of_the_samples():
    found = timing.summarise([1e-6, 2e-6, 3e-6, 4e-6, 100e-6])
    assert found.median_us == pytest.approx(3.0)
    assert found.spread == pytest.approx(2 / 3)
    assert timing.summarise([5e-6]).spread == 0


def test_no_garbage_is_collected_while_the_clock_runs_and_again_after():
    seen = []
    timing.host({"A": lambda: seen.append(gc.isenabled())}, open_device("cpu"), 4)
    assert seen == [False] * 4 and gc.isenabled()
