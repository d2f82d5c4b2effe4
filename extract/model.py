"""The words that flow through extraction: ModelRef, Variant, ExampleInputs, CapturedGraph, Capture, Failure.

ModelRef (what could be built) -> Variant (how it is traced) -> Capture (what came out). All are plain frozen data;
building happens in `extract.build`, tracing in `extract.capture`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import xxhash

from warehouse.graph.record import RECORD_VERSION, GraphRecord


@dataclass(frozen=True, slots=True)
class ModelRef:
    """One model that a source can build, known without building it.

    source       name of the source that builds it (`timm`)
    name         name inside the source (`resnet18.a1_in1k`, `bert/BertForMaskedLM`)
    config       canonical JSON of everything that shapes the built module; two refs with equal config build the
                 same module
    family       model family (`resnet`, `bert`)
    task         what the head does (`image-classification`, `masked-lm`, `detection`, ...)
    modality     `vision`, `text`, `audio`, `video`, `multimodal`, `time-series`
    revision     version of the library or commit that defines it
    license      license of the model definition, as the source states it
    """

    source: str
    name: str
    config: str
    family: str
    task: str
    modality: str
    revision: str
    license: str = ""

    @property
    def config_hash(self) -> str:
        """xxh3-128 of the source and the canonical configuration, as 32 hex digits."""
        return xxhash.xxh3_128_hexdigest(f"{self.source}\n{self.config}".encode())

    @property
    def key(self) -> str:
        return f"{self.source}:{self.name}"


def canonical_config(config: dict[str, Any]) -> str:
    """JSON with sorted keys and no white space: equal configurations give equal text."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def capture_id(config_hash: str, variant: Variant, hash_version: int) -> str:
    """The name of a capture: xxh3-128 of what is traced, how, and how the result is written down."""
    text = f"{config_hash}\n{variant.name}\n{RECORD_VERSION}\n{hash_version}"
    return xxhash.xxh3_128_hexdigest(text.encode())


MODES = ("eval", "train")
SHAPES = ("static", "symbolic")
FLOATS = ("float32", "float16", "bfloat16")
DEVICES = ("cuda", "cpu")


@dataclass(frozen=True, slots=True)
class Variant:
    """How a model is traced. The default needs no name; `parse` reads names such as `train+bfloat16`."""

    mode: str = "eval"
    shapes: str = "static"
    dtype: str = "float32"
    device: str = "cuda"

    @property
    def name(self) -> str:
        """`eval-static-float32-cuda`: every axis, always in this order."""
        return f"{self.mode}-{self.shapes}-{self.dtype}-{self.device}"

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Read `default`, one axis value (`train`), several joined by `+`, or a full `name`. ValueError if unknown."""
        chosen: dict[str, str] = {}
        axes = {"mode": MODES, "shapes": SHAPES, "dtype": FLOATS, "device": DEVICES}
        words = text.replace("-", "+").split("+")
        for word in words:
            if word == "default" and len(words) == 1:
                continue
            axis = next((a for a, values in axes.items() if word in values), None)
            if axis is None:
                known = ", ".join(v for values in axes.values() for v in values)
                raise ValueError(f"unknown variant {word!r}; known: default alone, or {known}, joined by '+'")
            if axis in chosen:
                raise ValueError(f"variant {text!r} names both {chosen[axis]} and {word}")
            chosen[axis] = word
        return cls(**chosen)


@dataclass(frozen=True, slots=True)
class ExampleInputs:
    """Small real CPU tensors (and plain values) to call a model with: `model(*args, **kwargs)`."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a model gave no capture (or an incomplete one). `kind` is one of `extract.failures.CLASSES`.

    place is `file.py:line in function` of the innermost frame outside torch, without machine-specific folders.
    """

    kind: str
    stage: str  # list | build | inputs | trace | record | worker
    exception: str
    message: str
    place: str


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """One Dynamo graph of a model, in capture order."""

    index: int
    record: GraphRecord
    graph_hash: str
    structure_hash: str
    template_hash: str
    op_hash: str


@dataclass(frozen=True, slots=True)
class Capture:
    """What tracing one (configuration, variant) gave.

    build        how the module was built: `empty`, `meta`, `real`, or empty text when it never was
    graphs       every graph Dynamo compiled, in order; of a failed capture, those before the failure
    breaks       graph-break reasons, in order
    failure      None when the capture is complete
    seconds      wall-clock seconds by stage: build, inputs, trace, record (a measurement: never part of identity)
    peak_mb      peak resident memory of the worker, MiB
    verified     `nodes`: every graph was reloaded and compared node by node; `outputs`: also run against the module
    """

    ref: ModelRef
    variant: Variant
    build: str
    graphs: tuple[CapturedGraph, ...]
    breaks: tuple[str, ...]
    failure: Failure | None
    parameters: int
    seconds: dict[str, float]
    peak_mb: float
    verified: str = "nodes"
