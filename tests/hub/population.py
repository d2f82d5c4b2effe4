"""A population of models as a Hub has them, each made from its index alone: nothing is held in memory.

Most models are fine-tunes of a few hundred architectures (a heavy tail: the k-th base has about 1/k of the tail), some
are adapters, quantised files or pipelines of other libraries, and a few are gated, broken or hostile.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

#: model type -> (architecture, task); dimensions follow from the number of the base.
FAMILIES = (
    ("llama", "LlamaForCausalLM", "text-generation"),
    ("bert", "BertForMaskedLM", "fill-mask"),
    ("qwen2", "Qwen2ForCausalLM", "text-generation"),
    ("bert", "BertForSequenceClassification", "text-classification"),
    ("mistral", "MistralForCausalLM", "text-generation"),
    ("roberta", "RobertaForSequenceClassification", "text-classification"),
    ("vit", "ViTForImageClassification", "image-classification"),
    ("gpt2", "GPT2LMHeadModel", "text-generation"),
    ("distilbert", "DistilBertForSequenceClassification", "text-classification"),
    ("t5", "T5ForConditionalGeneration", "text2text-generation"),
)
OTHER_LIBRARIES = ("diffusers", "peft", "gguf", "sentence-transformers", "mlx", "keras")
#: Kinds of broken entries, and what their configuration is (a text, or an HTTP status).
BROKEN: dict[str, Any] = {
    "html": "<html><body>Service is busy</body></html>",
    "deleted": 404,
    "private": 401,
    "negative": {"hidden_size": -5},
    "enormous": {"num_hidden_layers": 10**12},
    "wrong-type": {"hidden_size": "many"},
    "list": [1, 2, 3],
    "long": {"hidden_act": "x" * 10_000_000},
    "deep": "[" * 100_000,
    "nan": '{"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": NaN}',
    "strings": {"model_type": "../../etc/passwd"},
}


@dataclass(frozen=True, slots=True)
class Population:
    """`count` models over `bases` base models. `changed` says whose revision moved since the first crawl."""

    count: int
    bases: int = 400
    changed: frozenset[int] = field(default_factory=frozenset)
    every_broken: int = 97

    def entry(self, index: int) -> dict[str, Any]:
        """A row of the listing, as the Hub gives it with `expand`."""
        kind, base = self.kind(index)
        if kind == "other":
            library = OTHER_LIBRARIES[index % len(OTHER_LIBRARIES)]
            tags = [library, f"base_model:adapter:{self.base_name(base)}", "license:mit"]
            return {
                **self._common(index, f"user-{index % 5000}/{library}-{index}"),
                "library_name": library,
                "tags": tags,
            }
        model_type, architecture, task = FAMILIES[base % len(FAMILIES)]
        row = self._common(index, self.name(index))
        row["pipeline_tag"], row["library_name"] = task, "transformers"
        row["config"] = {"architectures": [architecture], "model_type": model_type}
        row["safetensors"] = {"parameters": {"F32": self.parameters(base)}, "total": self.parameters(base)}
        row["tags"] = ["transformers", "safetensors", model_type, "license:apache-2.0"]
        if kind != "base":
            row["tags"].append(f"base_model:finetune:{self.base_name(base)}")
        if kind == "gated":
            row["gated"] = "manual"
        if kind == "broken":
            row["safetensors"] = {"total": 10**9 + index}  # of a group of its own, or another would stand for it
        if kind == "unicode":
            row["id"] = row["modelId"] = f"us\u202eer/mo\u0000del-{index}"
        return row

    def config(self, index: int) -> dict[str, Any] | str | int | list[Any]:
        """config.json of a model: a value, a text as it is, or an HTTP status."""
        kind, base = self.kind(index)
        if kind == "other":
            return 404
        if kind == "gated":
            return 403
        model_type, architecture, _ = FAMILIES[base % len(FAMILIES)]
        given: dict[str, Any] = {"model_type": model_type, "architectures": [architecture], **self.dimensions(base)}
        if kind == "broken":
            broken = BROKEN[sorted(BROKEN)[index // self.every_broken % len(BROKEN)]]
            return {**given, **broken} if isinstance(broken, dict) else broken
        if index % 3 == 0:  # what a training run leaves behind
            given |= {"_name_or_path": f"/home/{index}", "transformers_version": "4.40.0", "torch_dtype": "bfloat16"}
        if index % 5 == 0:
            given |= {"eos_token_id": index % 50, "use_cache": False, "finetuning_run": f"run-{index}"}
        if index % 7 == 0 and model_type == "gpt2":  # the same, under the names that other libraries use
            given["num_hidden_layers"] = given.pop("n_layer")
            given["hidden_size"] = given.pop("n_embd")
        return given

    def kind(self, index: int) -> tuple[str, int]:
        """What an entry is, and which base model it comes from."""
        if index < self.bases:
            return "base", index
        draw = self._draw(index)
        base = min(self.bases - 1, int(self.bases ** (draw / 2**32)) - 1)  # Zipf: density 1/k
        if index % self.every_broken == 0:
            return "broken", base
        if index % 211 == 0:
            return "gated", base
        if index % 499 == 0:
            return "unicode", base
        return ("other" if index % 10 < 3 else "fine-tune"), base

    def dimensions(self, base: int) -> dict[str, Any]:
        model_type = FAMILIES[base % len(FAMILIES)][0]
        step = base // len(FAMILIES) + 1
        width, layers = 64 * step, 2 + step % 5
        if model_type == "gpt2":
            return {"n_embd": width, "n_layer": layers, "n_head": 4}
        if model_type == "distilbert":
            return {"dim": width, "n_layers": layers, "n_heads": 4, "hidden_dim": 2 * width}
        if model_type == "t5":
            return {"d_model": width, "num_layers": layers, "num_heads": 4, "d_ff": 2 * width, "d_kv": width // 4}
        heads = {"num_attention_heads": 4}
        if model_type in ("llama", "mistral", "qwen2"):
            heads |= {"num_key_value_heads": 2, "vocab_size": 1000}
        return {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 2 * width, **heads}

    def parameters(self, base: int) -> int:
        return 1_000_000 * (base + 1)

    def base_name(self, base: int) -> str:
        return f"maker-{base % 40}/base-{base}"

    def name(self, index: int) -> str:
        return self.base_name(index) if index < self.bases else f"user-{index % 5000}/model-{index}"

    def index(self, name: str) -> int:
        """The index that a name was made from. ValueError for one that was not."""
        return int(name.rsplit("-", 1)[1])

    def sha(self, index: int) -> str:
        return hashlib.sha1(f"{index}/{index in self.changed}".encode()).hexdigest()

    def body(self, index: int) -> tuple[int, bytes]:
        """Status and body of config.json."""
        given = self.config(index)
        if isinstance(given, int):
            return given, b'{"error": "no"}'
        return 200, (given if isinstance(given, str) else json.dumps(given)).encode()

    def _common(self, index: int, name: str) -> dict[str, Any]:
        return {
            "id": name, "modelId": name, "sha": self.sha(index), "gated": False, "private": False,
            "downloads": 10_000_000 // (index + 1), "lastModified": f"2025-{index % 12 + 1:02}-01T00:00:00.000Z",
        }  # fmt: skip

    @staticmethod
    def _draw(index: int) -> int:
        return int.from_bytes(hashlib.blake2b(str(index).encode(), digest_size=4).digest(), "big")
