"""The timm source: every architecture, and every pretrained tag whose configuration differs from its architecture.

Models are listed from timm's registry and default configurations; nothing is built or downloaded to list them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import timm
import torch
from timm.models import PretrainedCfg, get_arch_name, get_pretrained_cfg, model_entrypoint
from torch import nn

from extract.model import ExampleInputs, ModelRef, canonical_config
from extract.sources.registry import register


@register("timm")
class TimmSource:
    """Names are `architecture` or `architecture.tag`, as timm writes them."""

    name = "timm"

    def names(self) -> Iterator[str]:
        """Architectures, each followed by its pretrained tags."""
        tags: dict[str, list[str]] = {}
        for full in timm.list_models(pretrained=True, include_tags=True):
            tags.setdefault(get_arch_name(full), []).append(full)
        for architecture in timm.list_models():
            yield architecture
            yield from tags.get(architecture, [])

    def list(self) -> Iterator[ModelRef]:
        """Every name as a ModelRef; a tag that changes nothing shares its architecture's config_hash."""
        for name in self.names():
            yield self.ref(name)

    def ref(self, name: str) -> ModelRef:
        architecture = get_arch_name(name)
        cfg = _pretrained_cfg(name)
        library = f"timm {timm.__version__}"
        config = {
            "library": library,
            "architecture": architecture,
            "input_size": list(cfg.input_size),
            "num_classes": cfg.num_classes,
        }
        return ModelRef(
            source=self.name,
            name=name,
            config=canonical_config(config),
            family=_family(architecture),
            task="image-classification" if cfg.num_classes else "image-features",
            modality="vision",
            revision=library,
            license=cfg.license or "apache-2.0",
        )

    def build(self, ref: ModelRef) -> nn.Module:
        classes = _pretrained_cfg(ref.name).num_classes
        module: nn.Module = timm.create_model(ref.name, pretrained=False, num_classes=classes)
        return module

    def inputs(self, ref: ModelRef, model: nn.Module) -> ExampleInputs:
        """One image (batch, channels, height, width) in the size the configuration was made for.

        Two images in train mode: batch statistics of one value have no variance.
        """
        return ExampleInputs((torch.randn(2 if model.training else 1, *_pretrained_cfg(ref.name).input_size),))


def _pretrained_cfg(name: str) -> PretrainedCfg:
    """The default configuration of a name; an architecture without one gets timm's own defaults."""
    return get_pretrained_cfg(name, allow_unregistered=True) or PretrainedCfg()


@cache
def _family(architecture: str) -> str:
    """timm's own grouping: the module that defines the architecture (`vision_transformer`, `resnet`)."""
    module = model_entrypoint(architecture).__module__.rsplit(".", 1)[-1]
    return re.sub(r"^_+", "", module)
