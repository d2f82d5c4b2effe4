"""Names and ModelRefs of the sources, remembered between runs.

Listing a zoo means importing it and torch with it, which takes longer than a refresh that finds nothing new may. What
a source lists depends on the zoo's version and on our own source files, so answers are kept in the warehouse
(`catalog/<source>-<key>.json`) under a key made of both, and a third party's source is asked every time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import xxhash

import extract.sources
from extract.model import ModelRef
from extract.sources import registry
from warehouse.storage import Storage, durable, explained

FOLDER = "catalog"

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # listing reads many configurations, which it comments on


class Catalog:
    """What the sources list, through the warehouse's memory of it."""

    def __init__(self, storage: Storage, listing: Callable[[str], None] = lambda source: None):
        """`listing` is told of each source whose names must be asked for, which can take half a minute."""
        self.storage, self._listing = storage, listing
        self._held: dict[str, tuple[list[str], dict[str, ModelRef]]] = {}
        self._changed: set[str] = set()

    def names(self, source: str) -> list[str]:
        """Names of a source's models in its own order. UnknownSource when there is no such source."""
        names, _ = self._of(source)
        if not names:
            self._listing(source)
            with registry.guarded(source):
                names.extend(registry.names_of(registry.get(source)))
            self._changed.add(source)
        return names

    def refs(self, source: str, wanted: Iterable[str]) -> list[ModelRef]:
        """ModelRefs of some models. LookupError for an unknown name."""
        wanted = list(wanted)
        _, refs = self._of(source)
        missing = [name for name in wanted if name not in refs]
        if missing:
            with registry.guarded(source):
                found = registry.refs_of(registry.get(source), missing)
            refs.update({ref.name: ref for ref in found})
            self._changed.add(source)
        return [refs[name] for name in wanted]

    def hold(self, source: str, refs: dict[str, ModelRef]) -> None:
        """Take a source's models as given, instead of asking it."""
        self._held[source] = (list(refs), refs)

    def save(self) -> None:
        """Remember what was learned. WarehouseError when the warehouse cannot be written."""
        for source in sorted(self._changed):
            key = _key(source)
            if key is None:
                continue
            names, refs = self._held[source]
            text = json.dumps({"names": names, "refs": [asdict(refs[name]) for name in sorted(refs)]})
            with durable(self.storage, f"{FOLDER}/{source}-{key}.json", "keep the catalog") as sink:
                sink.write(text.encode())
            with explained(self.storage, "keep the catalog"):
                for name in self.storage.list(FOLDER):  # what older code listed is of no use to anyone
                    if name.startswith(f"{source}-") and name != f"{source}-{key}.json":
                        self.storage.remove(f"{FOLDER}/{name}")
        self._changed.clear()

    def _of(self, source: str) -> tuple[list[str], dict[str, ModelRef]]:
        if source not in self._held:
            if source not in registry.names():
                registry.get(source)  # raises, with the nearest name
            self._held[source] = self._remembered(source)
        return self._held[source]

    def _remembered(self, source: str) -> tuple[list[str], dict[str, ModelRef]]:
        key = _key(source)
        path = f"{FOLDER}/{source}-{key}.json"
        try:
            if key is None or not self.storage.size(path):
                return [], {}
            with self.storage.read(path) as file:
                held = json.loads(file.read())
            refs = [ModelRef(**{k: str(v) for k, v in ref.items()}) for ref in held["refs"]]
            return [str(name) for name in held["names"]], {ref.name: ref for ref in refs}
        except (ValueError, KeyError, TypeError, OSError):
            return [], {}  # a damaged memory is no memory: the source is asked again


def _key(source: str) -> str | None:
    """What a built-in source's listing depends on, hashed; None for a source whose code is not ours."""
    if source not in registry.BUILT_IN or source in registry.overridden():
        return None
    digest = xxhash.xxh3_128(metadata.version(source).encode())
    for path in sorted(Path(extract.sources.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
