"""Evaluations for tests: whole rows that the validators accept, to be varied."""

from __future__ import annotations

from typing import Any

from evaluate.verdict import blank

GPU, CPU = "NVIDIA H200", "cpu"


def origin(device: str = GPU) -> dict[str, Any]:
    return {
        "submission": "a" * 32, "submission_name": "mine", "run": "r1", "bench": "PassBench-1 0123abcd",
        "device": device, "lowering": "direct", "task": "t1", "stratum": "fusible", "subgraph_hash": "0" * 32,
        "case": "given", "dtype": "float32", "layers": ["process", "network"], "torch": "2.11.0", "triton": "3.6.0",
        "python": "3.12.3", "seed": 7,
    }  # fmt: skip


def times(speedup_host: float = 2.0, speedup_device: float | None = 4.0, baseline: float = 1.5) -> dict[str, Any]:
    """Clock columns that give these speedups over eager."""
    row: dict[str, Any] = {"baseline": "inductor", "host_samples": 100}
    for clock, speedup, eager in (("host", speedup_host, 60.0), ("device", speedup_device, 12.0)):
        if speedup is None:
            row["no_device_time"] = "not capturable"
            continue
        for who, ratio in (("eager", 1.0), ("baseline", baseline), ("pass", speedup)):
            row[f"{who}_{clock}_us"] = eager / ratio
            row[f"{who}_{clock}_spread"] = 0.03
        row[f"speedup_{clock}"] = eager / row[f"pass_{clock}_us"]
        row[f"baseline_speedup_{clock}"] = eager / row[f"baseline_{clock}_us"]
    return row


def clean(
    device: str = GPU, correct_t: int = -5, host: float = 2.0, over_device: float | None = 4.0, **more: Any
) -> Any:
    clocks = {} if device == CPU else times(host, over_device)
    return blank(**{**origin(device), **clocks, "verdict": "clean", "correct_t": correct_t, **more})


def failed(verdict: str, device: str = GPU, **more: Any) -> dict[str, Any]:
    given = {"compile_error": "compile", "runtime_error": "runtime", "timeout": "runtime", "wrong": "accuracy"}
    row = {"stage": "check", "detail": "what went wrong", "error_class": given.get(verdict)}
    exploit = {"exploit": "cached-by-pointer"} if verdict == "hack" else {}
    return blank(**{**origin(device), **row, **exploit, "verdict": verdict, **more})
