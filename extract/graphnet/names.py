"""From a sample's argument name to the path and role that a capture would have given it.

`L_self_modules_layer1_modules_0_parameters_weight_` -> (`layer1.0.weight`, parameter). Underscores inside a module's
own name cannot be told from separators other than by these words, so the path is a reading aid, never an identity.
"""

from __future__ import annotations

import re

_MARK = re.compile(r"_(?:modules|parameters|buffers)_+")
_SYMBOL = re.compile(r"s\d+")


def path_and_role(name: str, annotation: str) -> tuple[str, str]:
    """(path, role) of an argument of forward, by its name and annotation."""
    if annotation == "torch.SymInt" or annotation == "torch.SymFloat":
        return name, "symbol"
    if annotation.endswith("Parameter") or "_parameters_" in name:
        role = "parameter"
    elif "_buffers_" in name:
        role = "buffer"
    else:
        role = "input"
    words = re.sub(r"^[Ll]_", "", name).strip("_")
    words = re.sub(r"^(?:self|kwargs)_+", "", words) if words not in ("self", "kwargs") else words
    if role == "input" and not words.startswith("modules_"):
        return words or name, role
    parts = [part.strip("_") for part in _MARK.split(f"_{words}")]
    return ".".join(part for part in parts if part) or name, role
