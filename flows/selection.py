"""Which models a refresh is about: from `--source`, `--models`, `--limit` and `--seed` to ModelRefs.

`--models` names a file of `source:name` lines, or a glob over `source:name` (or over names alone), or the embedded
default, `demo`. Unknown names are refused with the nearest known one; a typing error never shrinks a run silently.
"""

from __future__ import annotations

import difflib
import fnmatch
import random
from collections.abc import Sequence
from pathlib import Path

from extract.model import ModelRef
from extract.sources import registry
from flows.catalog import Catalog
from flows.errors import UserError

DEMO = "demo"
DEMO_FILE = Path(__file__).parent / "demo_models.txt"


def select(
    catalog: Catalog, sources: Sequence[str], models: str | None, limit: int | None, seed: int | None
) -> list[ModelRef]:
    """The models asked for, each once. `limit` takes the first ones, or with `seed` a random sample of that size.

    Raises UserError for an unknown source or name, an unreadable file, a limit below 1, or an empty selection.
    """
    if limit is not None and limit < 1:
        raise UserError(f"--limit {limit} selects nothing: give 1 or more")
    if seed is not None and limit is None:
        raise UserError("--seed draws a sample, so it needs --limit: say how many models")
    for source in sources:
        if source not in registry.names():
            raise UserError(_unknown("source", source, registry.names()))
    file = DEMO_FILE if models == DEMO else Path(models) if models else None
    if file is not None and _is_file(file):
        keys = _from_file(catalog, file, sources)
    else:
        keys = _from_glob(catalog, models, sources or sorted(registry.BUILT_IN))
    keys = list(dict.fromkeys(keys))  # before the limit: a line given twice is one model
    if limit is not None and limit < len(keys):
        keys = random.Random(seed).sample(keys, limit) if seed is not None else keys[:limit]
    if not keys:
        raise UserError("no model is selected: give other --source or --models, or none for all built-in sources")
    found: dict[tuple[str, str], ModelRef] = {}
    for source in sorted({s for s, _ in keys}):
        for ref in catalog.refs(source, [name for s, name in keys if s == source]):
            found[source, ref.name] = ref
    return [found[key] for key in keys]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a glob may be no possible file name at all
        return False


def _from_file(catalog: Catalog, path: Path, sources: Sequence[str]) -> list[tuple[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise UserError(f"cannot read --models {path}: {why}; give a text file of source:name lines") from error
    keys = []
    for number, line in enumerate(lines, 1):
        entry = line.split("#")[0].strip()
        if not entry:
            continue
        source, colon, name = entry.partition(":")
        if not colon or not name:
            raise UserError(f"{path}, line {number}: {entry[:80]!r} is not of the form source:name")
        if source not in registry.names():
            raise UserError(f"{path}, line {number}: {_unknown('source', source, registry.names())}")
        if name not in catalog.names(source):
            raise UserError(f"{path}, line {number}: {_unknown(f'{source} model', name, catalog.names(source))}")
        if not sources or source in sources:
            keys.append((source, name))
    return keys


def _from_glob(catalog: Catalog, pattern: str | None, sources: Sequence[str]) -> list[tuple[str, str]]:
    every = [(source, name) for source in sources for name in catalog.names(source)]
    if pattern is None:
        return every
    exact = [k for k in every if pattern in (f"{k[0]}:{k[1]}", k[1])]
    if exact:  # a name that holds * or [ means itself
        return exact
    keys = [k for k in every if fnmatch.fnmatchcase(f"{k[0]}:{k[1]}", pattern) or fnmatch.fnmatchcase(k[1], pattern)]
    if not keys:
        known = [f"{s}:{n}" for s, n in every] if ":" in pattern else [n for _, n in every]
        raise UserError(_unknown("model, file or pattern", pattern, known))
    return keys


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    shown = "".join(c if c.isprintable() else "?" for c in name[:80])
    if near:
        return f"unknown {what} {shown!r}: did you mean {near[0]!r}?"
    few = f"; known: {', '.join(sorted(known))}" if len(known) <= 12 else ""
    return f"unknown {what} {shown!r}{few}"
