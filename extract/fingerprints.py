"""Which modules of a model trace alike: a fingerprint of everything a forward can read from its module.

In: a module whose tensors are fakes. Out: a small integer, equal for two modules exactly when their classes, their
attributes and the kinds of all their tensors are equal, all the way down; None for what cannot be compared. What has
no value semantics (functions, foreign objects) counts as equal only when it is the same object.
"""

from __future__ import annotations

import enum
import functools
import weakref
from collections.abc import Hashable, Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parameter import is_lazy

#: Values that are equal when their types and texts are: floats by text, so that 0.0 and -0.0 differ.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, range)


class _Incomparable(Exception):
    """A cycle, or something that is changed by being used."""


class Fingerprints:
    """Fingerprints of one model's modules, for as long as none of them changes."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, tuple[int | None, tuple[torch.Tensor, ...]]] = {}
        self._open: set[int] = set()
        self._kept: list[Any] = []  # what is known by its id must not be collected

    def of(self, module: nn.Module) -> int | None:
        """The module's fingerprint; None when it cannot be compared with another."""
        return self._look(module)[0]

    def tensors(self, module: nn.Module) -> tuple[torch.Tensor, ...]:
        """Its tensors and those below it, in an order that equal fingerprints share; a tied one appears again."""
        return self._look(module)[1]

    def _look(self, module: nn.Module) -> tuple[int | None, tuple[torch.Tensor, ...]]:
        found = self._known.get(id(module))
        if found is not None:
            return found
        if id(module) in self._open:
            raise _Incomparable
        self._open.add(id(module))
        tensors: list[torch.Tensor] = []
        number: int | None = None
        try:
            attributes = tuple((name, self._value(value, tensors)) for name, value in vars(module).items())
            first: dict[int, int] = {}
            ties = tuple(first.setdefault(id(t), i) for i, t in enumerate(tensors))
            tied = ties if len(first) < len(tensors) else ()
            number = self._number((type(module), attributes, tied))
        except _Incomparable:
            tensors = []
        finally:
            self._open.discard(id(module))
        self._kept.append(module)
        self._known[id(module)] = (number, tuple(tensors))
        return self._known[id(module)]

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _value(self, value: Any, tensors: list[torch.Tensor]) -> Hashable:
        """A hashable stand-in for an attribute; tensors met on the way are added to `tensors`."""
        kind = type(value)
        if kind in _PLAIN:
            return (kind, repr(value))
        if isinstance(value, nn.Module):
            number, below = self._look(value)
            if number is None:
                raise _Incomparable
            tensors.extend(below)
            return ("module", number)
        if isinstance(value, FakeTensor):
            tensors.append(value)
            traits = (value.dtype, value.device, value.requires_grad, getattr(value, "_is_param", False))
            return ("tensor", tuple(value.shape), value.stride(), *traits)
        if isinstance(value, dict):
            pairs = tuple((self._value(k, tensors), self._value(v, tensors)) for k, v in value.items())
            return (kind, pairs)
        if kind in (list, tuple):
            return (kind, tuple(self._value(v, tensors) for v in value))
        if kind in (set, frozenset) and all(type(v) in _PLAIN for v in value):
            return (kind, frozenset((type(v), repr(v)) for v in value))
        if isinstance(value, weakref.ReferenceType):  # nn.RNNBase refers to its weights so
            return (kind, self._value(value(), tensors))
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, value.keywords)
            return (kind, tuple(self._value(part, tensors) for part in parts))
        if isinstance(value, Iterator) or (isinstance(value, torch.Tensor) and is_lazy(value)):
            raise _Incomparable
        if not isinstance(value, enum.Enum):
            self._kept.append(value)
        return ("same", id(value))
