"""A row of a Hub's listing as a ledger's Model: what is kept of it, its group, or why nothing will be asked for it.

Models of a group have the same base model, architecture, model type and number of parameters, so one of them stands
for all. A row is a stranger's text: names must be names, everything else is cut, counted or dropped.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from extract.sources.hub.ledger import Model

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,95})?")
_SHA = re.compile(r"[0-9a-f]{40}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,95}")
#: How a tag names the model that another comes from, most telling first.
_BASES = ("base_model:finetune:", "base_model:quantized:", "base_model:merge:", "base_model:adapter:", "base_model:")


def read(row: Any) -> Model:
    """The Model of a row, whatever the row is."""
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        text = json.dumps(row)[:80] if not isinstance(row, dict) else str(row.get("id"))[:80]
        return Model(ascii(text), "", "", "hub_answer_invalid", "a row without a name", "{}")
    name, sha = row["id"], row.get("sha")
    tags = [t for t in row.get("tags") or () if isinstance(t, str)] if isinstance(row.get("tags"), list) else []
    library = _word(row.get("library_name")) or ("transformers" if "transformers" in tags else "none")
    entry = {
        "task": _word(row.get("pipeline_tag")),
        "library": library,
        "license": next((_word(t.removeprefix("license:")) for t in tags if t.startswith("license:")), ""),
        "downloads": row["downloads"] if _count(row.get("downloads")) else 0,
        "modified": _word(str(row.get("lastModified", ""))[:10]),
        "base": _base(tags, name),
        "parameters": _parameters(row.get("safetensors")),
    }
    kept = json.dumps(entry, sort_keys=True)
    if not _NAME.fullmatch(name) or ".." in name:
        return Model(ascii(name[:200]), "", "", "hub_answer_invalid", "no name that a model can have", kept)
    if not isinstance(sha, str) or not _SHA.fullmatch(sha):
        return Model(name, "", "", "hub_answer_invalid", "no commit is given", kept)
    digest = row["config"] if isinstance(row.get("config"), dict) else {}
    group, kind, message = _group(name, library, digest, entry)
    if not kind and (row.get("gated") or row.get("private")):
        group, kind, message = "", "hub_no_access", "gated" if row.get("gated") else "private"
    return Model(name, sha, group, kind, message, kept)


def _group(name: str, library: str, digest: dict[str, Any], entry: dict[str, Any]) -> tuple[str, str, str]:
    """(group, failure class, message) of a well-formed row."""
    if library == "timm":
        if name.startswith("timm/"):  # the name says it all: nothing need be asked
            return json.dumps(["timm", name.removeprefix("timm/")]), "", ""
        architecture = digest.get("architecture")
        said = architecture if isinstance(architecture, str) and _WORD.fullmatch(architecture) else ""
        return json.dumps(["timm", entry["base"] or name, said, entry["parameters"]]), "", ""
    if library != "transformers":
        return "", "library_unsupported", f"of the library {library}"
    architectures, model_type = digest.get("architectures"), digest.get("model_type")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    if not isinstance(first, str) or not isinstance(model_type, str):
        return "", "architecture_unknown", "the listing names no architecture or no model type"
    if (model_type, first) not in known_pairs():
        said = ascii(f"{model_type}/{first}"[:120])[1:-1]
        return "", "architecture_unknown", f"transformers has no {said}"
    # Without a base and a count nothing tells two models of a type apart.
    base = entry["base"] or ("" if entry["parameters"] else name)
    return json.dumps(["transformers", base, first, model_type, entry["parameters"]]), "", ""


@cache
def known_pairs() -> frozenset[tuple[str, str]]:
    """(model type, class) pairs that transformers builds."""
    from extract.sources.transformers_zoo import TransformersSource

    pairs = (name.split("/", 1) for name in TransformersSource().names())
    return frozenset((kind, cls) for kind, cls in pairs)


def _base(tags: list[str], name: str) -> str:
    """The model that a row says it comes from."""
    for start in _BASES:
        for tag in tags:
            base = tag.removeprefix(start)
            if tag.startswith(start) and _NAME.fullmatch(base) and base != name:
                return base
    return ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else ""


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _parameters(safetensors: Any) -> int:
    """The total number of parameters; 0 when the row does not say."""
    total = safetensors.get("total") if isinstance(safetensors, dict) else None
    return total if isinstance(total, int) and _count(total) else 0
