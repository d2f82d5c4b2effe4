"""What example inputs need to know about one model: its arguments, its sizes and its special tokens.

Configurations spell the same fact in many ways and at different depths; `Facts` finds it by a list of spellings,
breadth-first from the model's own configuration down.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import PreTrainedConfig

#: Tokens of a text input: enough for every pooling and convolution of the text models.
LENGTH = 24


class Facts:
    """Read-only view of a built model (`model`, `config`, `kind` = model type, `cls` = class name)."""

    def __init__(self, model: nn.Module):
        self.model: Any = model
        config: Any = model.config
        self.config: PreTrainedConfig = config
        self.kind: str = self.config.model_type
        self.cls = type(model).__name__
        parameters = inspect.signature(model.forward).parameters.values()
        self.accepts = {p.name for p in parameters}
        self.required = {p.name for p in parameters if p.default is p.empty and p.kind not in (2, 4)}
        main = getattr(model, "main_input_name", None)
        self.main: str = main[0] if isinstance(main, list) else main or "input_ids"

    def parts(self) -> Iterator[PreTrainedConfig]:
        """The configuration and those inside it, breadth-first."""
        level = [self.config]
        while level:
            yield from level
            level = [v for part in level for v in vars(part).values() if isinstance(v, PreTrainedConfig)]

    def get(self, *names: str, default: Any = None, config: PreTrainedConfig | None = None) -> Any:
        """The first of `names` that is set, looking through the configuration (or `config` alone) breadth-first."""
        for part in [config] if config is not None else self.parts():
            for name in names:
                value = getattr(part, name, None)
                if value is not None:
                    return value
        return default

    def part(self, *names: str) -> PreTrainedConfig | None:
        """The sub-configuration stored under the first of `names` that exists."""
        for part in self.parts():
            for name in names:
                value = vars(part).get(name)
                if isinstance(value, PreTrainedConfig):
                    return value
        return None

    @property
    def vision(self) -> PreTrainedConfig:
        """The configuration that describes images: the vision part, or the whole."""
        found = self.part("vision_config", "visual_config", "image_encoder", "encoder_config")
        return found if found is not None else self.config

    @property
    def audio(self) -> PreTrainedConfig:
        """The configuration that describes sound: the audio part, or the whole."""
        found = self.part("audio_config", "audio_encoder", "speech_config", "encoder_config", "encoder")
        return found if found is not None else self.config

    @property
    def text(self) -> PreTrainedConfig:
        found = self.part(
            "text_config", "thinker_config", "text_encoder", "llm_config", "language_config", "vlm_config"
        )
        return found if found is not None else self.config

    @cached_property
    def special(self) -> set[int]:
        """Every token id that the configuration gives a meaning."""
        found = set()
        for part in self.parts():
            for name, value in vars(part).items():
                if name.endswith(("_token_id", "_token_index", "_id")) and isinstance(value, int):
                    found.add(value)
        return found

    @cached_property
    def vocabulary(self) -> int:
        """Rows of the token embedding, by the module itself where it tells."""
        try:
            table = self.model.get_input_embeddings()
        except (AttributeError, NotImplementedError):
            table = None
        rows = getattr(table, "num_embeddings", None)
        if isinstance(rows, int):
            return rows
        size = self.get("vocab_size", config=self.text) or self.get("vocab_size", default=1000)
        return int(size if isinstance(size, int) else min(size))

    def ids(self, length: int = LENGTH, batch: int = 1) -> torch.Tensor:
        """Ordinary token ids (batch, length), ended by the end token that some classifiers and encoders look for."""
        plain = [i for i in range(min(self.vocabulary, 400)) if i not in self.special] or [0]
        ids = torch.tensor(plain)[torch.randint(len(plain), (batch, length))]
        end = self.get("eos_token_id")
        end = end[0] if isinstance(end, list) and end else end
        if isinstance(end, int) and 0 <= end < self.vocabulary:
            ids[:, -1] = end
        return ids

    def around(self, token: int, count: int) -> torch.Tensor:
        """Ordinary token ids with `count` copies of the placeholder `token` after the second (1, `LENGTH` + count)."""
        words = self.ids()
        return torch.cat([words[:, :2], torch.full((1, count), token), words[:, 2:]], dim=1)

    def features(self, method: str, **kwargs: Any) -> int:
        """How many embeddings `model.<method>(**kwargs)` yields in all, found without computing any.

        The method runs on fake tensors, so a placeholder can be put into the text for each embedding whatever the
        family's own arithmetic is. Raises whatever the model raises on fake tensors.
        """
        owner = next((m for m in self.model.modules() if hasattr(m, method)), None)
        if owner is None:
            raise LookupError(f"{self.cls} has no {method}")
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        named = dict(owner.named_parameters()) | dict(owner.named_buffers())
        with torch.no_grad(), mode:
            fakes = {f"model.{n}": _like(t) for n, t in named.items()}
            given = {k: _like(v) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
            found = torch.func.functional_call(_Method(owner, method), fakes, (), given, strict=False)
        pooled = getattr(found, "pooler_output", None)
        leaves = pooled if pooled is not None else getattr(found, "last_hidden_state", found)
        leaves = [leaves] if isinstance(leaves, torch.Tensor) else list(leaves)
        if leaves and isinstance(leaves[0], list | tuple):  # (features, lengths)
            leaves = list(leaves[0])
        return sum(leaf.numel() // leaf.shape[-1] for leaf in leaves)


class _Method(nn.Module):
    """A module whose forward is another module's method, for `torch.func.functional_call`."""

    def __init__(self, model: nn.Module, method: str):
        super().__init__()
        self.model, self.method = model, method

    def forward(self, **kwargs: Any) -> Any:
        return getattr(self.model, self.method)(**kwargs)


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
