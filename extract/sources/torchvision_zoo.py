"""The torchvision source: classification, detection, segmentation, video and optical-flow models.

Quantised models are left out: they hold packed weights that exist only as real CPU tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torchvision
from torch import nn
from torchvision.models import get_model, get_model_builder, list_models

from extract.model import ExampleInputs, ModelRef, canonical_config
from extract.sources.registry import register


def _image(size: int, batch: int) -> ExampleInputs:
    return ExampleInputs((torch.rand(batch, 3, size, size),))


def _detection(size: int, batch: int) -> ExampleInputs:
    """Detectors take a list of images (3, height, width)."""
    return ExampleInputs(([torch.rand(3, size, size) for _ in range(batch)],))


def _video(size: int, batch: int) -> ExampleInputs:
    """(batch, channels, frames, height, width); sixteen frames, as the video models were trained with."""
    return ExampleInputs((torch.rand(batch, 3, 16, size, size),))


def _flow(size: int, batch: int) -> ExampleInputs:
    """Two frames; RAFT wants sizes divisible by 8 and at least 128 pixels."""
    return ExampleInputs((torch.rand(batch, 3, size, size), torch.rand(batch, 3, size, size)))


#: Sub-package of torchvision.models -> (task, modality, inputs for a size and a batch).
KINDS: dict[str, tuple[str, str, Callable[[int, int], ExampleInputs]]] = {
    "detection": ("object-detection", "vision", _detection),
    "segmentation": ("semantic-segmentation", "vision", _image),
    "video": ("video-classification", "video", _video),
    "optical_flow": ("optical-flow", "video", _flow),
    "": ("image-classification", "vision", _image),
}
#: Input size where the model is not made for 224 pixels.
SIZES = {
    "inception_v3": 299,
    "mvit_v1_b": 224,
    "mvit_v2_s": 224,
    "swin3d_t": 224,
    "swin3d_s": 224,
    "swin3d_b": 224,
    "s3d": 224,
    "vit_h_14": 224,
}
KIND_SIZES = {"video": 112, "optical_flow": 256, "detection": 320, "segmentation": 224}


def _kind(name: str) -> str:
    module = get_model_builder(name).__module__
    return next((k for k in KINDS if k and f".{k}." in module), "")


@register("torchvision")
class TorchvisionSource:
    """Names are those of `torchvision.models.list_models()`, quantised ones excepted."""

    name = "torchvision"

    def names(self) -> Iterator[str]:
        yield from (n for n in list_models() if not n.startswith("quantized_"))

    def list(self) -> Iterator[ModelRef]:
        for name in self.names():
            yield self.ref(name)

    def ref(self, name: str) -> ModelRef:
        builder = get_model_builder(name)
        kind = _kind(name)
        size = SIZES.get(name, KIND_SIZES.get(kind, 224))
        task, modality, _ = KINDS[kind]
        library = f"torchvision {torchvision.__version__.split('+')[0]}"
        return ModelRef(
            source=self.name,
            name=name,
            config=canonical_config(
                {"library": library, "builder": f"{builder.__module__}.{builder.__name__}", "size": size}
            ),
            family=builder.__module__.rsplit(".", 1)[-1],
            task=task,
            modality=modality,
            revision=library,
            license="bsd-3-clause",
        )

    def build(self, ref: ModelRef) -> nn.Module:
        kwargs = {"weights": None}
        if _kind(ref.name) in ("detection", "segmentation"):
            kwargs["weights_backbone"] = None
        module: nn.Module = get_model(ref.name, **kwargs)
        return module

    def inputs(self, ref: ModelRef, model: nn.Module) -> ExampleInputs:
        kind = _kind(ref.name)
        # Two in train mode: batch statistics of one value have no variance.
        return KINDS[kind][2](SIZES.get(ref.name, KIND_SIZES.get(kind, 224)), 2 if model.training else 1)
