"""Gates and correctness of one subgraph on its device: is it sound, and how near are eager and Inductor to float64?

In go a `Subject`, the compiled callable and the device, out come columns of `profiles`, or a `Refused` with a class.
Runs under the device lock; a graph that writes to its inputs gets fresh copies for every call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from curate.profile.subject import Subject, copies, placed
from evaluate.measure import reference
from evaluate.measure.compare import Agreement, agreement, leaves, tolerance, worst

#: Level at which a trivial answer must not pass: assert_close's own thresholds.
GATE_LEVEL = -5
#: Inputs that are tested one by one for whether they matter.
MAX_TESTED_INPUTS = 32


class Refused(Exception):
    """The subgraph ends here with a class of `curate.profile.classes`."""

    def __init__(self, klass: str, detail: str):
        super().__init__(detail)
        self.klass = klass


@dataclass(frozen=True, slots=True)
class _Run:
    """Flat outputs, and the inputs after the call when it may have written to them."""

    outputs: list[Any]
    inputs: list[Any]


def run(call: Callable[..., Any], inputs: Sequence[Any], mutates: bool) -> _Run:
    """One call; on copies of `inputs` when the graph may write to them."""
    given = copies(inputs) if mutates else list(inputs)
    outputs = leaves(call(*given))
    return _Run(outputs, [v for v in given if isinstance(v, torch.Tensor)] if mutates else [])


def judged(subject: Subject, compiled: Callable[..., Any], device: str) -> dict[str, Any]:
    """Columns of correctness (reference, compared, eager_*, inductor_*) and gates. Raises Refused, and torch's own."""
    columns: dict[str, Any] = {}
    inputs = placed(subject.drawn["recipe"], device)
    eager = _eager(subject, inputs)
    columns |= _gates(subject, eager, inputs, device)
    found: dict[str, list[Agreement]] = {"eager": [], "inductor": []}
    compared: list[str] = []
    for distribution, drawn in subject.drawn.items():
        given = inputs if distribution == "recipe" else placed(drawn, device)
        plain = eager if distribution == "recipe" else run(subject.module, given, subject.mutates)
        try:
            fused = run(compiled, given, subject.mutates)
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            raise Refused("inductor_error", first_line(error)) from error
        if distribution == "recipe":
            columns["inductor_problem"] = _different(fused.outputs, plain.outputs)
        if subject.random or not _finite(plain.outputs):
            continue
        exact, columns["reference"] = _exact(subject, given, plain)
        compared.append(distribution)
        found["eager"].append(agreement([*plain.outputs, *plain.inputs], exact))
        found["inductor"].append(agreement([*fused.outputs, *fused.inputs], exact))
    columns["compared"] = compared
    for arm, cases in found.items():
        least = worst(cases)
        if least is not None:  # errors are those of the recipes' own values; the level is that of the worst case
            columns |= {f"{arm}_t": least.t, f"{arm}_max_abs": cases[0].max_abs, f"{arm}_max_rel": cases[0].max_rel}
            if arm == "inductor" and columns["inductor_problem"] is None:
                columns["inductor_problem"] = least.problem
    return columns


def first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:300]


def _eager(subject: Subject, inputs: Sequence[Any]) -> _Run:
    try:
        return run(subject.module, inputs, subject.mutates)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever an operator raises, it is this subgraph's own
        if "CUDA error" in str(error):
            raise
        raise Refused("eager_error", first_line(error)) from error


def _exact(subject: Subject, inputs: Sequence[Any], plain: _Run) -> tuple[list[Any], str]:
    """Outputs (and inputs after the call) in float64; eager's own where the graph has no float64 form."""
    given = [reference.widened(v) for v in inputs]
    try:
        outputs = leaves(subject.exact(*given))
        after = [v for v in given if isinstance(v, torch.Tensor)] if subject.mutates else []
        alike = agreement([*plain.outputs, *plain.inputs], [*outputs, *after])
        if alike.problem is None or "instead of" not in alike.problem and "dtype" not in alike.problem:
            return [*outputs, *after], "float64"
    except torch.OutOfMemoryError:
        pass
    except Exception as error:  # no float64 form: an operator that refuses doubles, or reads bits
        if "CUDA error" in str(error):
            raise
    return [*map(reference.widened, plain.outputs), *map(reference.widened, plain.inputs)], "eager"


def _finite(outputs: Sequence[Any]) -> bool:
    real = [v for v in outputs if isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex())]
    return all(bool(v.isfinite().all()) for v in real)


def _different(actual: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """Whether structure, shapes or dtypes differ."""
    if len(actual) != len(expected):
        return f"{len(actual)} outputs instead of {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if isinstance(a, torch.Tensor) != isinstance(e, torch.Tensor):
            return f"output {i}: {type(a).__name__} instead of {type(e).__name__}"
        if isinstance(a, torch.Tensor) and (a.shape, a.dtype) != (e.shape, e.dtype):
            return f"output {i}: {a.dtype} {[*a.shape]} instead of {e.dtype} {[*e.shape]}"
    return None


def _gates(subject: Subject, eager: _Run, inputs: Sequence[Any], device: str) -> dict[str, Any]:
    """Whether zeros, constants or a copy would do for an answer, and which inputs do not matter."""
    if not _finite(eager.outputs):
        raise Refused("non_finite", "NaN or infinity in the outputs of eager mode")
    tensors = [v for v in eager.outputs if isinstance(v, torch.Tensor) and v.numel()]
    if not tensors:
        raise Refused("degenerate", "no output holds a value")
    other = placed(subject.drawn["reseeded"], device)
    insensitive, tested = [], 0
    for slot, (mine, theirs) in enumerate(zip(inputs, other, strict=True)):
        if not isinstance(mine, torch.Tensor) or tested >= MAX_TESTED_INPUTS or subject.random:
            continue
        tested += 1
        try:
            swapped = run(subject.module, [*inputs[:slot], theirs, *inputs[slot + 1 :]], subject.mutates)
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError) or "CUDA error" in str(error):
                raise
            continue  # values that fit only with the others of their draw: lengths, offsets
        if _equal(swapped, eager):
            insensitive.append(slot)
    if tested and len(insensitive) == tested and not subject.mutates:
        raise Refused("degenerate", "no input changes any output")
    return {
        "zero_passes": all(_near(v, torch.zeros_like(v)) for v in tensors),
        "constant_passes": all(_near(v, _constant(v)) for v in tensors),
        "copy_passes": all(any(_copied(v, i) for i in inputs) for v in tensors),
        "insensitive": insensitive,
    }


def _equal(one: _Run, other: _Run) -> bool:
    pairs = zip(one.outputs, other.outputs, strict=True)
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else True for a, b in pairs
    )


def _constant(value: torch.Tensor) -> torch.Tensor:
    """The constant nearest to all elements: the middle of their range."""
    if not value.is_floating_point():
        return value.flatten()[:1].expand(value.shape)
    low, high = value.double().aminmax()
    return ((low + high) / 2).to(value.dtype).expand(value.shape)


def _near(value: torch.Tensor, answer: torch.Tensor) -> bool:
    if not value.is_floating_point():
        return bool(torch.equal(value, answer))
    atol, rtol = tolerance(value.dtype, GATE_LEVEL)
    expected = value.double()
    return bool(((answer.double() - expected).abs() <= atol + rtol * expected.abs()).all())


def _copied(value: torch.Tensor, given: Any) -> bool:
    """Whether an output holds an input's elements in the same order, whatever its shape."""
    if not isinstance(given, torch.Tensor) or given.dtype != value.dtype or given.numel() != value.numel():
        return False
    return bool(torch.equal(value.reshape(-1), given.reshape(-1)))
