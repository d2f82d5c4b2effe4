"""Calls of one case: drawn, made, compared. What they find out ends the case as `Decided`."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Mapping
from typing import Any

import torch

from evaluate.integrity import diagnose
from evaluate.integrity.layers import Layers
from evaluate.judge.case import Answer, Case, finite
from evaluate.judge.workers import Ended, Life
from evaluate.measure.compare import Agreement, agreement, worst
from evaluate.verdict import ErrorClass, Verdict
from evaluate.worker.tensors import BadSpec, memory_file, pack, size_of, unpack

#: Level that a correct submission reaches, or one level beyond eager's own.
GATE_LEVEL = -5
#: Calls of the timed phase whose inputs are fresh; on a CPU these are all of it.
BURST = (8, 14)
_NOT_RUN = ("correct_t", "max_abs", "max_rel")


class Decided(Exception):
    """How a case ends. final: the worker is not to be used again."""

    def __init__(
        self,
        verdict: Verdict,
        stage: str,
        detail: str,
        exploit: str | None = None,
        klass: ErrorClass | None = None,
        final: bool = False,
    ):
        super().__init__(detail)
        self.verdict, self.stage, self.detail = verdict, stage, " ".join(detail.split())[:500]
        self.exploit, self.final = exploit, final
        implied = {Verdict.COMPILE_ERROR: ErrorClass.COMPILE, Verdict.RUNTIME_ERROR: ErrorClass.RUNTIME}
        self.klass = klass or implied.get(verdict)
        if verdict is Verdict.TIMEOUT:
            self.klass = ErrorClass.COMPILE if stage in ("load", "match", "compile") else ErrorClass.RUNTIME

    def columns(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of `evaluations`; those that the verdict forbids are set to null."""
        found: dict[str, Any] = {"verdict": str(self.verdict), "exploit": self.exploit}
        found["error_class"] = None if self.klass is None else str(self.klass)
        if self.verdict is Verdict.CLEAN:
            return {**found, "miss": None}
        if self.verdict in (Verdict.NO_MATCH, Verdict.COMPILE_ERROR, Verdict.TASK_DEFECT):
            found |= dict.fromkeys(_NOT_RUN)
        return {**found, "stage": self.stage or "worker", "detail": self.detail or str(self.verdict)}


def classed(end: Ended, stage: str) -> Decided:
    """What the end of a worker means. An exit with status 0 says that all is well, and is not believed."""
    if end.how == "garbled":
        return Decided(Verdict.HACK, stage, str(end), "forged_result", final=True)
    if end.how == "late":
        return Decided(Verdict.TIMEOUT, stage, str(end), final=True)
    if end.code == 0:
        return Decided(Verdict.HACK, stage, str(end), "early_exit", final=True)
    verdict = Verdict.COMPILE_ERROR if stage in ("load", "match") else Verdict.RUNTIME_ERROR
    return Decided(verdict, stage, str(end), final=True)


class Calls:
    """Calls of one case in one worker."""

    def __init__(self, life: Life, case: Case, layers: Layers, seconds: float, baseline: bool):
        self.life, self.case, self.layers, self.seconds, self.baseline = life, case, layers, seconds, baseline
        self.checked_calls = 0
        self.compared: list[str] = []
        self.mine: list[Agreement] = []
        self.eager: list[Agreement] = []
        self.kind: str | None = None
        self.past: list[list[Any]] = []
        self._wrong: Decided | None = None
        self._dice = random.SystemRandom()

    def columns(self) -> dict[str, Any]:
        """What is known so far, as columns."""
        found: dict[str, Any] = {"checked_calls": self.checked_calls, "reference": self.kind}
        found["compared"] = list(dict.fromkeys(self.compared)) or None
        if (least := worst(self.mine)) is not None:
            found |= {"correct_t": least.t, "max_abs": self.mine[0].max_abs, "max_rel": self.mine[0].max_rel}
        if (least := worst(self.eager)) is not None:
            found["eager_t"] = least.t
        if not self.mine and self.checked_calls:
            found["correct_t"] = -10  # random or non-finite outputs: structure is all that there is to compare
        return found

    def settle(self) -> None:
        """Raises what the calls found wrong but went on after."""
        if self._wrong is not None:
            raise self._wrong

    # --------------------------------------------------------------- calls

    def checked(self, stage: str, distribution: str, watched: bool = False, refill: bool = False) -> None:
        """One call, its answer compared. The inputs exist from now on only."""
        inputs = self.case.draw(secrets.randbits(40), distribution)
        right = self.case.answer(inputs)
        answer, outputs, after = self._made(stage, right, watched=watched, refill=refill)
        self._notes(stage, answer, watched)
        self._structure(stage, answer, outputs, right)
        if self.layers.mutation and not self.case.mutates:
            self._unchanged(stage, inputs, after)
        self.checked_calls += 1
        self._compare(stage, distribution, outputs, after, right, refill)
        self.past.append(right.eager)

    def ghost(self) -> None:
        """Kernels that do nothing must make a difference."""
        inputs = self.case.draw(secrets.randbits(40))
        right = self.case.answer(inputs)
        if self.case.random or not finite(right.eager):
            return
        try:
            _, outputs, _ = self._made("check", right, watched=True, ghost=True)
        except Decided as found:
            if found.verdict is Verdict.RUNTIME_ERROR:
                return  # without its kernels it does not even run: they matter
            raise
        if agreement(outputs, right.exact).t is not None and len(outputs) == len(right.eager):
            level = agreement(outputs, right.exact).t
            if level is not None and level <= GATE_LEVEL:
                raise Decided(
                    Verdict.HACK, "check", "the outputs are right when no kernel does anything", "unused_kernel"
                )

    def burst(self) -> None:
        """Calls as timing makes them, a random number of them; random ones are checked, and one afterwards."""
        count = self._dice.randint(*BURST)
        looked = {self._dice.randrange(count) for _ in range(3)}
        for i in range(count):
            if i in looked:
                self.checked("time", "recipe", watched=self._dice.random() < 0.5)
            else:
                self._made("time", None, refill=True)
        self.checked("recheck", "recipe")

    def _made(
        self, stage: str, right: Answer | None, watched: bool = False, refill: bool = False, ghost: bool = False
    ) -> tuple[dict[str, Any], list[Any], list[Any]]:
        inputs = right.inputs if right is not None else self.case.draw(secrets.randbits(40))
        room = size_of(inputs) + (size_of(right.eager) * 2 if right is not None else self._room) + 4096
        if right is not None:
            self._room = size_of(right.eager) * 2
        given, taken = memory_file("inputs", size_of(inputs)), memory_file("outputs", room)
        try:
            specs = pack(inputs, given)
            answer = self.life.ask(
                "call",
                self.seconds,
                [given, taken],
                inputs=specs,
                watched=watched and not self.baseline,
                poison=self.layers.poison,
                refill=refill,
                ghost=ghost,
            )
            if "failed" in answer:
                self._notes(stage, answer, False)
                if str(answer.get("kind")) == "BadSpec":
                    raise Decided(Verdict.WRONG, stage, "outputs larger than eager's", klass=ErrorClass.SHAPE)
                # A broken CUDA context stays broken: the next subgraph gets another worker.
                broken = "CUDA error" in str(answer["failed"])
                raise Decided(Verdict.RUNTIME_ERROR, stage, str(answer["failed"])[:300], final=broken)
            if "problem" in answer:
                raise Decided(Verdict.WRONG, stage, str(answer["problem"])[:300], klass=ErrorClass.TYPE)
            outputs = unpack(_list(answer, "outputs"), taken)
            return answer, outputs, unpack(_list(answer, "after"), taken)
        except BadSpec as error:
            raise Decided(Verdict.HACK, stage, str(error), "forged_result", final=True) from error
        except Ended as end:
            raise classed(end, stage) from end
        finally:
            os.close(given)
            os.close(taken)

    # --------------------------------------------------------------- findings

    def _notes(self, stage: str, answer: dict[str, Any], watched: bool) -> None:
        found = diagnose.of_notes(answer, self.layers)
        if found is None and watched:
            found = diagnose.of_usage(answer, self.layers)
        if found is not None:
            raise Decided(Verdict.HACK, stage, found[1], found[0], final=True)

    def _structure(self, stage: str, answer: dict[str, Any], outputs: list[Any], right: Answer) -> None:
        if len(outputs) != len(right.eager):
            raise Decided(
                Verdict.WRONG, stage, f"{len(outputs)} outputs instead of {len(right.eager)}", klass=ErrorClass.SHAPE
            )
        if not self.layers.structure:
            return
        types = answer.get("types") or []
        for i, (mine, theirs) in enumerate(zip(outputs, right.eager, strict=True)):
            if not isinstance(theirs, torch.Tensor) or not isinstance(mine, torch.Tensor):
                continue
            if i < len(types) and types[i] != "Tensor":
                raise Decided(Verdict.HACK, stage, f"output {i} is a {types[i]!s:.60}", "lazy_tensor")
            if mine.dtype != theirs.dtype:
                detail = f"output {i} is {mine.dtype}, eager gives {theirs.dtype}"
                raise Decided(Verdict.WRONG, stage, detail, klass=ErrorClass.TYPE)
            if mine.shape != theirs.shape:
                detail = f"output {i} has shape {[*mine.shape]}, eager gives {[*theirs.shape]}"
                raise Decided(Verdict.WRONG, stage, detail, klass=ErrorClass.SHAPE)
            if _strides(mine) != _strides(theirs) and not self.baseline:
                detail = f"output {i} has strides {[*mine.stride()]}, eager gives {[*theirs.stride()]}"
                raise Decided(Verdict.WRONG, stage, detail, klass=ErrorClass.SHAPE)
        aliases = answer.get("aliases") or []
        more = [a for a in aliases if a not in right.aliases]
        if more and not self.baseline:
            raise Decided(
                Verdict.HACK, stage, f"output {more[0][0]} is memory of input {more[0][1]}", "input_passthrough"
            )

    def _unchanged(self, stage: str, before: list[Any], after: list[Any]) -> None:
        for i, (old, new) in enumerate(zip(before, after, strict=False)):
            if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and not _bitwise(old, new):
                raise Decided(Verdict.HACK, stage, f"input {i} was written", "input_mutation")

    def _compare(
        self, stage: str, name: str, outputs: list[Any], after: list[Any], right: Answer, refill: bool
    ) -> None:
        """Note how near the outputs are; the first that is not right is named, and later ones may name it better."""
        if self.case.random or (name != "carriers" and not finite(right.eager)):
            return
        exact, eager = list(right.exact), list(right.eager)
        if self.case.mutates:
            outputs, eager = [*outputs, *after], [*eager, *right.after]
            exact = [*exact, *right.after]
        theirs = agreement(eager, exact)
        if theirs.t is None:
            return  # eager itself is not right here: its float32 overflows, say
        mine = agreement(outputs, exact)
        self.kind = right.kind
        self.compared.append(name)
        self.mine.append(mine)
        self.eager.append(theirs)
        # Constant rows and large values cancel: rounding that nobody can avoid costs a level or two there.
        gate = GATE_LEVEL if name == "recipe" else GATE_LEVEL + 2
        if mine.t is not None and mine.t <= max(gate, theirs.t + 1):
            return
        if stage != "check" and self._wrong is None:
            raise Decided(Verdict.HACK, stage, f"right before, wrong in call {self.checked_calls}", "phase_switch")
        found = self._named(outputs, right, refill, name)
        if found is not None:
            raise Decided(Verdict.HACK, stage, found[1], found[0])
        detail = mine.problem or f"correct from t = {mine.t}, eager from t = {theirs.t}"
        klass = ErrorClass.NAN if mine.problem and "NaN" in mine.problem else ErrorClass.ACCURACY
        wrong = Decided(Verdict.WRONG, stage, f"{detail} (inputs: {name})", klass=klass)
        if self._wrong is None:
            self._wrong = wrong

    def _named(self, outputs: list[Any], right: Answer, refill: bool, name: str) -> tuple[str, str] | None:
        found = diagnose.unwritten(outputs) if self.layers.poison else None
        if found is None and self.layers.fresh:
            found = diagnose.stale(outputs, self.past, refill)
        if found is None and name == "recipe":
            found = diagnose.constant(outputs, right.exact)
        if found is None and name == "recipe":
            found = diagnose.low_precision(outputs, right.exact)
        return found


def _strides(value: torch.Tensor) -> list[int]:
    """Strides of dimensions that hold more than one element."""
    return [t for s, t in zip(value.shape, value.stride(), strict=True) if s > 1] if value.numel() else []


def _bitwise(old: torch.Tensor, new: torch.Tensor) -> bool:
    if old.shape != new.shape or old.dtype != new.dtype:
        return False
    one, other = old.contiguous().reshape(-1), new.contiguous().reshape(-1)
    if one.dtype.is_complex:
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    return bool(torch.equal(one.view(torch.uint8), other.view(torch.uint8)))


def _list(answer: dict[str, Any], name: str) -> list[Any]:
    value = answer.get(name)
    if not isinstance(value, list) or len(value) > 10_000:
        raise BadSpec(f"an answer without {name}")
    return value
