"""The layers of defence, each of which can be switched off to see what it is good for (docs/integrity.md)."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Layers:
    """screen: the submission's text is looked at before it is loaded. containment: namespaces, Landlock, seccomp, an
    own user. match: a trivial match is none. fresh: inputs change under the same pointer, and under the same shape.
    distributions: small, large, integer, constant-row and NaN inputs. poison: fresh memory is filled with a pattern.
    mutation: inputs are compared after the call. structure: exact type, dtype, shape, strides, aliases.
    guard: operators inside replacements. usage: Triton kernels were launched, and matter. timed: random calls of the
    timed phase, and one after it, are checked. state: settings and functions of the process, threads. audit: Python's
    audit hook. floor: times below what the device can move. clocks: the judge's wall clock against the worker's."""

    screen: bool = True
    containment: bool = True
    match: bool = True
    fresh: bool = True
    distributions: bool = True
    poison: bool = True
    mutation: bool = True
    structure: bool = True
    guard: bool = True
    usage: bool = True
    timed: bool = True
    state: bool = True
    audit: bool = True
    floor: bool = True
    clocks: bool = True

    def names(self) -> list[str]:
        """The active ones."""
        return [f.name for f in fields(self) if getattr(self, f.name)]
