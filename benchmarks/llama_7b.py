"""The job of `benchmarks/memory.py`: a capture as in a refresh, or, without a payload, Llama's 7B configuration."""

from __future__ import annotations

from typing import Any

from transformers import LlamaConfig, LlamaForCausalLM

from extract import job
from extract.capture import capture
from extract.model import ModelRef, Variant
from extract.sources import registry


class Llama7B:
    """The published dimensions of Llama 7B, all 32 layers: 6.7 billion parameters."""

    name = "llama-7b"

    def build(self, ref: ModelRef) -> LlamaForCausalLM:
        return LlamaForCausalLM(LlamaConfig(use_cache=False))

    def inputs(self, ref: ModelRef, model: Any) -> Any:
        transformers = registry.get("transformers")
        return transformers.inputs(ref, model)


def run(given: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    if given:
        return job.run(given, limits)
    ref = ModelRef("llama-7b", "llama/LlamaForCausalLM", "{}", "llama", "causal-lm", "text", "")
    found = capture(Llama7B(), ref, Variant())
    if found.failure is not None:
        raise RuntimeError(f"{found.failure.kind}: {found.failure.message}")
    return {"nodes": sum(g.record.num_nodes() for g in found.graphs), "parameters": found.parameters}
