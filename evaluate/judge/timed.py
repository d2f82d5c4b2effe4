"""Times of one case on a GPU: the submission in its worker, eager and Inductor in theirs, in turns, two clocks.

The protocol is the published one: 25 calls to warm up, 100 that are timed, medians. The arms take turns A B B A in
blocks, each in its own process, one at a time on the device; L2 is flushed before every call. Around each block runs
the judge's own clock: a worker that claims less than the block took, beyond what an empty block takes, is suspect.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaluate.judge.calls import Calls, Decided
from evaluate.judge.workers import Ended, Life
from evaluate.measure.device import Device
from evaluate.measure.floor import Copies
from evaluate.measure.timing import Timing, summarise
from evaluate.tasks import Member
from evaluate.verdict import Verdict

WARM_UPS, TRIALS, TURNS = 25, 100, 4
REPLAYS = 12
#: Below this share of the floor no implementation is believed; caches keep a little of what a flush should evict.
FLOOR_SLACK = 0.7
#: The judge's clock may see so many times what the worker claims, after what an empty block takes.
WALL_FACTOR, WALL_SLACK_S = 1.6, 30e-6


@dataclass(slots=True)
class Timer:
    """baselines: lives with `eager` and `inductor` loaded; `renew` replaces one that ended. copies: the device's table
    of plain copies."""

    device: Device
    copies: Copies | None
    baselines: dict[str, Life]
    renew: Callable[[str], Life]
    floor: bool = True
    clocks: bool = True

    def columns(self, calls: Calls, member: Member) -> dict[str, Any]:
        """Clock columns of `evaluations`. Raises Decided for what is implausible."""
        arms = {"pass": calls.life, **self._prepared(calls)}
        kept: dict[str, list[float]] = {name: [] for name in arms}
        found: dict[str, Any] = {"dropped_samples": 0, "baseline": "inductor" if "baseline" in arms else None}
        with self.device.lock():
            for life in arms.values():
                _ask(life, "warm", WARM_UPS)
            for turn in range(TURNS):
                for name in arms if turn % 2 == 0 else list(arms)[::-1]:
                    seconds, throttled = self._block(arms[name], TRIALS // TURNS, watch=name == "pass")
                    found["dropped_samples"] += len(seconds) if throttled else 0
                    kept[name] += [] if throttled else seconds
            device = {name: self._device_time(life, found) for name, life in arms.items()}
        self._fill(found, "host", {name: summarise(values) for name, values in kept.items()})
        found["host_samples"] = min(len(values) for values in kept.values())
        if found["host_samples"] == 0:
            raise Decided(Verdict.HARNESS_ERROR, "time", "the device was throttled in every block")
        if all(t is not None for t in device.values()):
            self._fill(found, "device", {n: t for n, t in device.items() if t is not None})
            found["device_samples"] = REPLAYS
        elif found.get("no_device_time") is None:
            found["no_device_time"] = "not capturable"
        self._plausible(found, calls)
        self._read_clocks(found)
        return found

    def _prepared(self, calls: Calls) -> dict[str, Life]:
        """The baselines with the same graph and inputs, called once."""
        ready: dict[str, Life] = {}
        for name in ("eager", "inductor"):
            try:
                ready["eager" if name == "eager" else "baseline"] = self._baseline(name, calls)
            except (Decided, Ended) as error:
                if isinstance(error, Ended) or error.final:
                    self.baselines[name] = self.renew(name)
                if name == "eager":
                    raise Decided(Verdict.HARNESS_ERROR, "time", f"eager cannot be timed: {error}") from error
        return ready

    def _baseline(self, name: str, calls: Calls) -> Life:
        life = self.baselines[name]
        answer = life.ask("graph", 300.0, record=calls.case.as_json(), lowering="direct")
        if "failed" in answer:
            raise Decided(Verdict.COMPILE_ERROR, "time", str(answer["failed"])[:300])
        Calls(life, calls.case, calls.layers, 300.0, baseline=True).checked("time", "recipe")
        return life

    def _block(self, life: Life, count: int, watch: bool) -> tuple[list[float], bool]:
        start = time.perf_counter()
        seconds, throttled = _ask(life, "host", count)
        wall = time.perf_counter() - start
        if watch and self.clocks:
            start = time.perf_counter()
            _ask(life, "empty", count)
            empty = time.perf_counter() - start
            claimed = sum(seconds)
            if wall - empty > WALL_FACTOR * claimed + WALL_SLACK_S * count + 2e-3:
                detail = f"{claimed * 1e3:.3f} ms claimed, {(wall - empty) * 1e3:.3f} ms by the judge's clock"
                raise Decided(Verdict.SUSPECT, "time", detail, "forged_time")
        return seconds, throttled

    def _device_time(self, life: Life, found: dict[str, Any]) -> Timing | None:
        answer = life.ask("time", 120.0, clock="device", samples=REPLAYS)
        if "not_capturable" in answer or not answer.get("seconds"):
            found["no_device_time"] = str(answer.get("not_capturable") or answer.get("failed") or "throttled")[:200]
            return None
        taken = summarise([float(s) for s in answer["seconds"]])
        return Timing(taken.median_us, float(answer.get("spread", 0.0)), taken.samples, 0)

    def _fill(self, found: dict[str, Any], clock: str, timings: dict[str, Timing]) -> None:
        for name, timing in timings.items():
            if timing.samples:
                found[f"{name}_{clock}_us"], found[f"{name}_{clock}_spread"] = timing.median_us, timing.spread
        eager = found.get(f"eager_{clock}_us")
        for who, column in (("pass", f"speedup_{clock}"), ("baseline", f"baseline_speedup_{clock}")):
            if eager is not None and (mine := found.get(f"{who}_{clock}_us")):
                found[column] = eager / mine

    def _plausible(self, found: dict[str, Any], calls: Calls) -> None:
        moved = calls.case.moved()
        if self.copies is None or moved is None:
            return
        found["floor_us"] = self.copies.floor_us(moved.total)
        fastest = found.get("pass_device_us", found.get("pass_host_us"))
        if self.floor and fastest is not None and fastest < FLOOR_SLACK * found["floor_us"]:
            detail = f"{fastest:.3g} us, a copy of as many bytes takes {found['floor_us']:.3g} us"
            raise Decided(Verdict.SUSPECT, "time", detail, "below_floor")

    def _read_clocks(self, found: dict[str, Any]) -> None:
        if (now := self.device.clocks()) is not None:
            found |= {
                "sm_mhz": now.sm_mhz,
                "memory_mhz": now.memory_mhz,
                "throttle": now.throttle,
                "temperature_c": now.temperature_c,
            }


def _ask(life: Life, clock: str, count: int) -> tuple[list[float], bool]:
    """Seconds of `count` calls, and whether the device was throttled. A worker's figures are checked for sense."""
    try:
        answer = life.ask("time", 120.0, clock=clock, samples=count)
    except Ended as end:
        from evaluate.judge.calls import classed

        raise classed(end, "time") from end
    if "failed" in answer:
        raise Decided(Verdict.RUNTIME_ERROR, "time", str(answer["failed"])[:300])
    seconds = answer.get("seconds")
    if clock == "warm":
        return [], False
    sound = isinstance(seconds, list) and len(seconds) == count
    if not sound or not all(isinstance(s, float) and 0 < s < 3600 for s in seconds):
        raise Decided(Verdict.HACK, "time", "times that no clock gives", "forged_time", final=True)
    return seconds, bool(answer.get("throttled"))
