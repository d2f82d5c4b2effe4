"""The transformers source: every configuration type with every class that the library's auto mappings give it.

Names come from the auto mappings alone, without importing a modelling file; `ref` makes one configuration (a few
milliseconds), `build` one module with random weights. Nothing is downloaded and no remote code is trusted.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the library on import: building never reaches for a hub

import transformers  # noqa: E402
from torch import nn  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402

from extract.model import ExampleInputs, ModelRef, canonical_config  # noqa: E402
from extract.sources import transformers_configs as configs  # noqa: E402
from extract.sources.registry import register  # noqa: E402

#: Configuration entries that shape no module: provenance, generation defaults and label names.
UNSTRUCTURAL = (
    "transformers_version", "_name_or_path", "architectures", "torch_dtype", "dtype", "id2label", "label2id",
    "return_dict", "output_attentions", "output_hidden_states", "task_specific_params", "problem_type",
)  # fmt: skip


@cache
def _pairs() -> dict[str, str]:
    """`model_type/ClassName` -> task, in the order of the mappings; the first mapping that names a pair gives its task."""
    found: dict[str, str] = {}
    for mapping, entries in vars(modeling_auto).items():
        if not mapping.endswith("_MAPPING_NAMES") or mapping.startswith("CONFIG"):
            continue
        task = mapping.removesuffix("_MAPPING_NAMES").removeprefix("MODEL_FOR_").removeprefix("MODEL_")
        task = {"MAPPING_NAMES": "features", "MODEL": "features"}.get(task, task).lower().replace("_", "-")
        for model_type, classes in entries.items():
            for name in classes if isinstance(classes, list | tuple) else (classes,):
                found.setdefault(f"{model_type}/{name}", task)
    return found


@register("transformers")
class TransformersSource:
    """Names are `model_type/ClassName`, as in `bert/BertForMaskedLM`."""

    name = "transformers"

    def names(self) -> Iterator[str]:
        """Every pair of a configuration type and a class: base models first, then one head after another."""
        yield from _pairs()

    def list(self) -> Iterator[ModelRef]:
        for name in self.names():
            yield self.ref(name)

    def ref(self, name: str) -> ModelRef:
        """The named pair. LookupError, with the nearest name, for one that the library does not have."""
        pairs = _pairs()
        if name not in pairs:
            near = difflib.get_close_matches(name, pairs, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise LookupError(f"transformers has no model {name!r}{hint}")
        model_type, cls = name.split("/")
        return ModelRef(
            source=self.name,
            name=name,
            config=canonical_config({"class": cls, "config": _content(model_type)}),
            family=model_type,
            task=pairs[name],
            modality=_modality(model_type, pairs[name]),
            revision=f"transformers {transformers.__version__}",
            license="Apache-2.0",
        )

    def build(self, ref: ModelRef) -> nn.Module:
        model_type, name = ref.name.split("/")
        config = configs.shrunk(model_type)
        cls = getattr(transformers, name, None)
        if cls is None:  # a few classes are mapped but not exported
            cls = getattr(import_module(type(config).__module__.replace("configuration_", "modeling_")), name)
        wanted = cls.config_class
        if wanted is not None and not isinstance(config, wanted):  # mapped to the whole, made from a part of it
            config = next((part for part in configs.parts(config) if isinstance(part, wanted)), config)
        module: nn.Module = cls(config)
        return module

    def inputs(self, ref: ModelRef, model: nn.Module) -> ExampleInputs:
        from extract.sources.transformers_inputs import example_inputs

        return ExampleInputs(kwargs=example_inputs(model))


def _content(model_type: str) -> dict[str, Any]:
    return configs.shrunk(model_type).to_dict()


def _modality(model_type: str, task: str) -> str:
    return "text"
