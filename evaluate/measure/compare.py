"""How far outputs are from a reference: largest errors, and the strictest tolerance level at which they are correct.

In go the outputs of a run and those of the reference, in float64 where they are real numbers; out comes an `Agreement`.
Levels t run from -10 (strictest) to 5. At level t an element is correct when

    |actual - expected| <= atol + rtol * |expected|,   atol = 10^(a t), rtol = 10^(r t)

with (a, r) by the dtype of the actual output: float16 (1, 3/5), bfloat16 (1, 1.796/5), float32 (1, 5.886/5), float64
(7/5, 7/5); complex dtypes as their parts; every other dtype must be equal. t = -5 gives the thresholds of
torch.testing.assert_close for float16, bfloat16 and float32 with atol 1e-5. (PassNet, arXiv 2605.29357, the tolerance
table of its error-aware score.) NaN and infinities must stand at the same places, with the same signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

LEVELS = tuple(range(-10, 6))
_EXPONENTS: dict[torch.dtype, tuple[float, float]] = {
    torch.float16: (1.0, 3 / 5),
    torch.bfloat16: (1.0, 1.796 / 5),
    torch.float32: (1.0, 5.886 / 5),
    torch.float64: (7 / 5, 7 / 5),
}
_PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}


@dataclass(frozen=True, slots=True)
class Agreement:
    """t: the first level at which all outputs are correct, None when at none. max_abs, max_rel: largest errors over
    finite elements of real outputs (relative to max(|expected|, 1e-12)); None without such elements. problem: what is
    different in kind (number, shape, dtype, places of NaN), or None."""

    t: int | None
    max_abs: float | None = None
    max_rel: float | None = None
    problem: str | None = None


def tolerance(dtype: torch.dtype, t: int) -> tuple[float, float]:
    """(atol, rtol) at level t; (0, 0) for dtypes that must be equal."""
    exponents = _EXPONENTS.get(_PARTS.get(dtype, dtype))
    return (0.0, 0.0) if exponents is None else (10.0 ** (exponents[0] * t), 10.0 ** (exponents[1] * t))


def leaves(outputs: Any) -> list[Any]:
    """The members of nested tuples, lists and dicts (by sorted key), in order."""
    if isinstance(outputs, (tuple, list)):
        return [leaf for member in outputs for leaf in leaves(member)]
    if isinstance(outputs, dict):
        return [leaf for key in sorted(outputs) for leaf in leaves(outputs[key])]
    return [outputs]


def agreement(actual: Sequence[Any], expected: Sequence[Any]) -> Agreement:
    """Compare flat outputs with flat references, tensors and plain values alike. Never broadcasts."""
    if len(actual) != len(expected):
        return Agreement(None, problem=f"{len(actual)} outputs instead of {len(expected)}")
    found = [_pair(i, a, e) for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    problem = next((f.problem for f in found if f.problem), None)
    levels = [f.t for f in found]
    worst = None if None in levels else max((t for t in levels if t is not None), default=LEVELS[0])
    absolute = [f.max_abs for f in found if f.max_abs is not None]
    relative = [f.max_rel for f in found if f.max_rel is not None]
    return Agreement(worst, max(absolute, default=None), max(relative, default=None), problem)


def worst(found: Sequence[Agreement]) -> Agreement | None:
    """The least agreement of several: one bad case makes all bad. None of none."""
    if not found:
        return None
    levels = [f.t for f in found]
    t = None if None in levels else max(level for level in levels if level is not None)
    absolute = [f.max_abs for f in found if f.max_abs is not None]
    relative = [f.max_rel for f in found if f.max_rel is not None]
    problem = next((f.problem for f in found if f.problem), None)
    return Agreement(t, max(absolute, default=None), max(relative, default=None), problem)


def _pair(index: int, actual: Any, expected: Any) -> Agreement:
    if not isinstance(actual, torch.Tensor) or not isinstance(expected, torch.Tensor):
        alike = not isinstance(actual, torch.Tensor) and not isinstance(expected, torch.Tensor)
        if alike and (actual == expected or (actual != actual and expected != expected)):
            return Agreement(LEVELS[0])
        return Agreement(None, problem=f"output {index}: {_kind(actual)} instead of {_kind(expected)}")
    if actual.shape != expected.shape:
        return Agreement(None, problem=f"output {index}: shape {[*actual.shape]} instead of {[*expected.shape]}")
    dtype = actual.dtype
    if dtype.is_complex:
        actual, expected = torch.view_as_real(actual.resolve_conj()), torch.view_as_real(expected.resolve_conj())
    real = actual.dtype in _EXPONENTS
    if real != expected.dtype.is_floating_point:
        return Agreement(None, problem=f"output {index}: dtype {actual.dtype} where the reference has {expected.dtype}")
    if not real:
        equal = bool(torch.equal(actual, expected.to(actual.dtype)))
        return Agreement(LEVELS[0] if equal else None, problem=None if equal else f"output {index}: values differ")
    return _real(index, actual, expected.double(), dtype)


def _real(index: int, actual: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> Agreement:
    """All levels in one visit to the device: the excess of the worst element over each tolerance."""
    if actual.numel() == 0:
        return Agreement(LEVELS[0])
    got = actual.double()
    finite = expected.isfinite()
    same = torch.where(finite, got.isfinite(), (got == expected) | (got.isnan() & expected.isnan())).all()
    error = torch.where(finite, (got - expected).abs(), 0.0)
    size = torch.where(finite, expected.abs(), 0.0)
    figures = [same.double(), finite.any().double(), error.max(), (error / size.clamp(min=1e-12)).max()]
    for t in LEVELS:
        atol, rtol = tolerance(dtype, t)
        figures.append((error - rtol * size).max() - atol)
    alike, any_finite, absolute, relative, *excess = torch.stack(figures).tolist()
    errors = (absolute, relative) if any_finite else (None, None)
    if not alike:
        return Agreement(None, None, None, problem=f"output {index}: NaN or infinity at other places")
    return Agreement(next((t for t, e in zip(LEVELS, excess, strict=True) if e <= 0), None), *errors)


def _kind(value: Any) -> str:
    return f"a tensor of shape {[*value.shape]}" if isinstance(value, torch.Tensor) else f"{value!r:.40}"
