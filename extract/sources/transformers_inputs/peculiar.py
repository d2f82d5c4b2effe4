"""What is peculiar to one class or one model type: exact inputs where the signature alone does not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extract.sources.transformers_inputs.facts import Facts

#: class name -> builder; looked up before the model type.
BY_CLASS: dict[str, Callable[[Facts], dict[str, Any]]] = {}
#: model type -> builder for every class of the type.
BY_TYPE: dict[str, Callable[[Facts], dict[str, Any]]] = {}
