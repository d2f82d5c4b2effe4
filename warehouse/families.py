"""Families of operators: what an operator does to its tensors, for colours in drawings and for grouping in SQL.

In goes a target as records name it (`torch.nn.functional.linear`), out comes one of the families in `families.txt`.
Only the last part of the name counts, without the in-place underscore: a function and its methods share a family.
"""

from __future__ import annotations

from pathlib import Path

OTHER = "other"


def _read(text: str) -> dict[str, tuple[str, ...]]:
    families: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line.endswith(":"):
            family = line.removesuffix(":")
            families[family] = ()
        elif line.startswith(" "):
            families[family] += tuple(line.split())
    return families


#: family -> last parts of the targets that belong to it.
FAMILIES = _read(Path(__file__).with_suffix(".txt").read_text())
_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}


def family_of(target: str) -> str:
    """The family of an operator, `other` when none claims it."""
    name = target.rsplit(".", 1)[-1]
    return _FAMILY_OF.get(name) or _FAMILY_OF.get(name.removesuffix("_"), OTHER)
