"""The `hub` source: ModelRefs of a crawl, and building them through timm and transformers, in workers offline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn

from extract.model import ExampleInputs, ModelRef
from extract.sources.hub.crawl import Listed
from extract.sources.registry import register

_MODALITIES = {
    "image": "vision", "object": "vision", "depth": "vision", "mask": "vision", "unconditional": "vision",
    "video": "video", "audio": "audio", "automatic": "audio", "voice": "audio", "zero": "multimodal",
    "visual": "multimodal", "document": "multimodal", "time": "time-series",
}  # fmt: skip


def refs(listed: Iterable[Listed]) -> Iterator[ModelRef]:
    """ModelRefs of the listed models that have a configuration. Equal configurations share one text."""
    shared: dict[str, str] = {}
    for one in listed:
        if one.kind:
            continue
        entry = one.entry
        config = shared.setdefault(one.config, one.config)
        given = json.loads(config)
        task = entry["task"] or "features"
        yield ModelRef(
            source="hub",
            name=one.model.name,
            config=config,
            family=given.get("type") or given["architecture"].split("_")[0],
            task=task,
            modality="vision" if given["library"] == "timm" else _MODALITIES.get(task.split("-")[0], "text"),
            revision=one.model.sha,
            license=entry["license"],
        )


@register("hub")
class HubSource:
    """Names are repositories, `author/model`. Listing asks the Hub; building never does."""

    name = "hub"

    def list(self) -> Iterator[ModelRef]:
        """The most downloaded models, as many as `query.DEFAULT_LIMIT`. Raises HubError."""
        from extract.sources.hub.client import Client
        from extract.sources.hub.crawl import crawl
        from extract.sources.hub.query import Query

        return refs(crawl(Client(), Query()))

    def build(self, ref: ModelRef) -> nn.Module:
        given = json.loads(ref.config)
        if given["library"] == "timm":
            import timm

            module: nn.Module = timm.create_model(
                given["architecture"], pretrained=False, num_classes=given["num_classes"], **given["arguments"]
            )
            return module
        return _transformers(given)

    def inputs(self, ref: ModelRef, model: nn.Module) -> ExampleInputs:
        given = json.loads(ref.config)
        if given["library"] == "timm":
            import torch

            return ExampleInputs((torch.randn(2 if model.training else 1, *given["input_size"]),))
        from extract.sources.transformers_inputs import example_inputs

        return ExampleInputs(kwargs=example_inputs(model))


def _transformers(given: dict[str, Any]) -> nn.Module:
    from extract.sources import transformers_configs, transformers_zoo

    model_type, name = given["type"], given["class"]
    config = transformers_configs.cut(transformers_configs.stated(model_type, given["config"]))
    return transformers_zoo.module_of(config, name)
