"""The registry of sources.

A source is a class with a `name` and the three methods of `Source`. Ours register with the decorator below; a third
party's package names its class under the entry-point group `passnet.sources` and is found without touching our code.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from typing import Any, Protocol, TypeVar

from torch import nn

from extract.model import ExampleInputs, ModelRef

GROUP = "passnet.sources"
BUILT_IN = {
    "timm": "extract.sources.timm_zoo",
    "transformers": "extract.sources.transformers_zoo",
    "torchvision": "extract.sources.torchvision_zoo",
}


class Source(Protocol):
    """What a source must do. `list` never builds a model; `build` and `inputs` run in a worker process."""

    name: str

    def list(self) -> Iterator[ModelRef]:
        """Every model of the source, in a stable order."""
        ...

    def build(self, ref: ModelRef) -> nn.Module:
        """The module, with random weights. Runs under a build mode of `extract.build`, never downloads."""
        ...

    def inputs(self, ref: ModelRef, model: nn.Module) -> ExampleInputs:
        """Small real CPU inputs that the model accepts. Raises LookupError where none are known."""
        ...


class UnknownSource(LookupError):
    """No source of that name."""


_REGISTERED: dict[str, type[Source]] = {}
_S = TypeVar("_S", bound=type[Any])


def register(name: str) -> Callable[[_S], _S]:
    """Class decorator: make the class the source called `name`."""

    def add(cls: _S) -> _S:
        cls.name = name
        _REGISTERED[name] = cls
        return cls

    return add


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {e.name: e for e in metadata.entry_points(group=GROUP)}


def names() -> list[str]:
    """Names of all sources: built in, registered, and installed by third parties."""
    return sorted({*BUILT_IN, *_REGISTERED, *_entry_points()})


def get(name: str) -> Source:
    """The source called `name`. UnknownSource names the nearest known one."""
    if name not in _REGISTERED:
        points = _entry_points()
        if name in BUILT_IN:
            import_module(BUILT_IN[name])
        elif name in points:
            register(name)(points[name].load())
        else:
            near = difflib.get_close_matches(name, names(), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UnknownSource(f"unknown source {name!r}{hint} Known: {', '.join(names())}")
    return _REGISTERED[name]()
