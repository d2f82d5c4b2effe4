"""The registry of sources.

A source is a class with a `name` and the three methods of `Source`. Ours register with the decorator below; a third
party's package names its class under the entry-point group `passnet.sources` and is found without touching our code.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from extract.model import ExampleInputs, ModelRef

if TYPE_CHECKING:  # listing names from a catalog must not cost the import of torch
    from torch import nn

GROUP = "passnet.sources"
BUILT_IN = {
    "timm": "extract.sources.timm_zoo",
    "transformers": "extract.sources.transformers_zoo",
    "torchvision": "extract.sources.torchvision_zoo",
}
#: Built in as well, but only used when asked for by name: it asks a server.
ON_REQUEST = {"hub": "extract.sources.hub.source"}


class Source(Protocol):
    """What a source must do. `list` never builds a model; `build` and `inputs` run in a worker process.

    Two methods more are used where a source has them, since making every ModelRef may be slow: `names()`, the names
    alone in the order of `list`, and `ref(name)`, one ModelRef (LookupError for an unknown name).
    """

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


def overridden() -> set[str]:
    """Names of built-in sources whose place another class has taken."""
    return {n for n, cls in _REGISTERED.items() if n in BUILT_IN and cls.__module__ != BUILT_IN[n]}


def names() -> list[str]:
    """Names of all sources: built in, registered, and installed by third parties."""
    return sorted({*BUILT_IN, *ON_REQUEST, *_REGISTERED, *_entry_points()})


def get(name: str) -> Source:
    """The source called `name`. UnknownSource names the nearest known one."""
    if name not in _REGISTERED:
        points = _entry_points()
        if name in BUILT_IN or name in ON_REQUEST:
            import_module((BUILT_IN | ON_REQUEST)[name])
        elif name in points:
            register(name)(points[name].load())
        else:
            near = difflib.get_close_matches(name, names(), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UnknownSource(f"unknown source {name!r}{hint} Known: {', '.join(names())}")
    return _REGISTERED[name]()


class BrokenSource(Exception):
    """A source of another package does not load, or cannot say what it lists."""


@contextlib.contextmanager
def guarded(name: str) -> Iterator[None]:
    """BrokenSource for whatever the code of a source that is not built in raises, an unknown name aside."""
    try:
        yield
    except (LookupError, BrokenSource):
        raise
    except Exception as error:
        if name in BUILT_IN and name not in overridden():
            raise
        point = _entry_points().get(name)
        package = f" of the package {point.dist.name}" if point is not None and point.dist is not None else ""
        raise BrokenSource(
            f"the source {name!r}{package} does not work ({type(error).__name__}: {error}): mend or remove that package"
        ) from error


def names_of(source: Source) -> list[str]:
    """Names of a source's models, in its order."""
    cheap = getattr(source, "names", None)
    return list(cheap()) if cheap is not None else [ref.name for ref in source.list()]


def refs_of(source: Source, wanted: Iterable[str]) -> list[ModelRef]:
    """ModelRefs of some of a source's models, in the order asked for. LookupError for a name it does not have."""
    one = getattr(source, "ref", None)
    if one is not None:
        return [one(name) for name in wanted]
    known = {ref.name: ref for ref in source.list()}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise LookupError(f"{source.name} has no model {missing[0]!r}")
    return [known[name] for name in wanted]
