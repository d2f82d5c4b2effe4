"""What an answer of a worker gives away: findings with the exploit's name, from noted events and from bytes.

In go what the worker noted and what it returned beside what is right, out come (exploit, detail) pairs or None. The
names are those of the static screen where both see the same trick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from evaluate.integrity.layers import Layers
from evaluate.worker.watch import POISON, means

Found = tuple[str, str] | None
_WORD = int.from_bytes(POISON, "little", signed=True)


def of_notes(answer: Mapping[str, Any], layers: Layers) -> Found:
    """Events, changed state and threads that an answer of the worker carries."""
    events = answer.get("events")
    if layers.audit and isinstance(events, list) and events:
        first = events[0]
        if isinstance(first, list) and len(first) == 2:
            return str(first[0])[:60], f"the submission caused {str(first[1])[:160]}"
    changed = answer.get("changed")
    if layers.state and isinstance(changed, list) and changed:
        return means(str(changed[0])), f"changed {', '.join(map(str, changed))[:160]}"
    if layers.state and isinstance(answer.get("threads"), int) and answer["threads"] > 0:
        return "background_thread", f"{answer['threads']} threads more than before the submission was loaded"
    return None


def of_usage(answer: Mapping[str, Any], layers: Layers) -> Found:
    """Operators inside replacements, and replacements without a kernel, on a watched call."""
    computed = answer.get("computed")
    if layers.guard and isinstance(computed, list) and computed:
        return "delegation", f"the replacement runs {', '.join(map(str, computed))[:160]}"
    if layers.usage and answer.get("idle"):
        return "no_kernel", "a replacement returns without launching a Triton kernel"
    return None


def unwritten(outputs: Sequence[Any]) -> Found:
    """Memory that was allocated and never written."""
    for i, value in enumerate(outputs):
        if not isinstance(value, torch.Tensor) or not value.numel() or value.dtype.itemsize < 2:
            continue
        words = value.contiguous().reshape(-1).view(torch.int16).view(value.numel(), -1)
        poisoned = (words == _WORD).all(dim=1)
        share = poisoned.double().mean().item()
        if share == 1.0:
            return "uninitialised_output", f"output {i} is memory that was never written"
        if share > 0:
            return "skipped_work", f"{100 * share:.3g}% of output {i} was never written"
    return None


def stale(outputs: Sequence[Any], earlier: Sequence[Sequence[Any]], refilled: bool) -> Found:
    """An answer to an earlier question. refilled: the inputs stood in the same memory as those before."""
    for old in earlier:
        pairs = list(zip(outputs, old, strict=False))
        if pairs and len(outputs) == len(old) and all(_same(a, b) for a, b in pairs):
            name = "cached_by_pointer" if refilled else "cached_by_shape"
            return name, "the outputs are those of an earlier call"
    return None


def constant(actual: Sequence[Any], expected: Sequence[Any]) -> Found:
    """One value everywhere, where the right ones differ."""
    for i, (mine, right) in enumerate(zip(actual, expected, strict=False)):
        if isinstance(mine, torch.Tensor) and isinstance(right, torch.Tensor) and mine.numel() > 1:
            first = mine.reshape(-1)[0]
            if bool((mine == first).all()) and not bool((right == right.reshape(-1)[0]).all()):
                return "constant_output", f"output {i} is {first.item():.4g} everywhere"
    return None


def low_precision(actual: Sequence[Any], expected: Sequence[Any]) -> Found:
    """Every value fits a narrower dtype, where the right ones do not."""
    for i, (mine, right) in enumerate(zip(actual, expected, strict=False)):
        if not isinstance(mine, torch.Tensor) or mine.dtype not in (torch.float32, torch.float64) or mine.numel() < 8:
            continue
        for narrow in (torch.float16, torch.bfloat16):
            fits = torch.equal(mine.to(narrow).to(mine.dtype), mine)
            if fits and not torch.equal(right.to(mine.dtype).to(narrow).to(mine.dtype), right.to(mine.dtype)):
                return "low_precision", f"all of output {i} fits {str(narrow).removeprefix('torch.')}"
    return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return (
            one.shape == other.shape and one.dtype == other.dtype and one.numel() > 1 and bool(torch.equal(one, other))
        )
    return False
