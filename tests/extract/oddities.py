"""A source of small modules, each of which does one thing that a graph record must survive or refuse."""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from extract.model import ExampleInputs, ModelRef, canonical_config


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 16), nn.LayerNorm(16)

    def forward(self, x):
        return F.gelu(self.norm(self.linear(x)))


class InPlace(nn.Module):
    def forward(self, x):
        y = x * 2
        before = y + 1
        y.add_(3).relu_()
        y[:, 0] = 7
        y += before
        return y, before


class MutatesInput(nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x + 1


class MutatesBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(8))

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Constants(nn.Module):
    def forward(self, x):
        table = torch.tensor([[1.5, -0.0, float("inf"), 1e-45, 2.0, 3.0, 4.0, 5.0]], device=x.device)
        return x + table, torch.full((2,), float("-inf"), device=x.device), torch.arange(4, device=x.device)


class HeldConstant(nn.Module):
    """A tensor that is neither parameter nor buffer."""

    def __init__(self):
        super().__init__()
        self.scale = torch.tensor(0.5)

    def forward(self, x):
        return x * self.scale


class NoGradRegion(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x.sin()
        with torch.enable_grad():
            return y + x


class AutocastRegion(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            y = self.linear(x)
        return y.float() + x


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return checkpoint(lambda t: torch.sigmoid(self.linear(t)), x, use_reentrant=False)


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t.sin() + 1, lambda t: t.cos() - 1, (x,))


class Breaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        x = self.second(x).relu()
        torch._dynamo.graph_break()
        return x * 3


class BreaksInEveryLayer(nn.Module):
    """The same code compiled for layers of different widths: guards must tell them apart."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([_Broken(8, 4), _Broken(4, 2), _Broken(2, 1)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class _Broken(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(width, out)

    def forward(self, x):
        x = self.linear(x)
        sys.stdout.flush()
        torch._dynamo.graph_break()
        return torch.tanh(x)


class ReadsValues(nn.Module):
    def forward(self, x):
        return x + 1 if bool(x.sum() > 0) else x - 1


class ManyOutputs(nn.Module):
    def forward(self, x):
        low, high = x.chunk(2, dim=-1)
        best = x.max(dim=-1)
        return {"low": low, "best": (best.values, best.indices), "none": None, "number": 3}


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(32, 8), nn.Linear(8, 32, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


class Dropout(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=self.training) + F.dropout(x, 0.25, training=self.training)


class BatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(x).relu_()


def _relay(**values):
    return _second(**values)


def _second(**values):
    torch._dynamo.graph_break()
    return next(iter(values.values()))


def _doubled(x):
    return x * 2


class RelaysWithoutOperators(nn.Module):
    """Frames that hold no operator run again with other keywords, in a forward that Dynamo leaves to eager."""

    def forward(self, x):
        for name in ("a", "b"):
            x = _relay(**{name: x})
            torch._dynamo.graph_break()
        return _doubled(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(8, 8, batch_first=True, bidirectional=True), nn.GRU(16, 4)

    def forward(self, x):
        return self.gru(self.lstm(x[None])[0])[0]


class Unknown(nn.Module):
    """Calls an operator that is on no list."""

    def forward(self, x):
        return torch.ops.oddities.secret(x)


@torch.library.custom_op("oddities::secret", mutates_args=())
def _secret(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@_secret.register_fake
def _(x):
    return torch.empty_like(x)


class Unrolled(nn.Module):
    """Grows past any budget."""

    def forward(self, x):
        for _ in range(3000):
            x = x + 1
        return x


class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("this model dislikes its input")


class NeverBuilds(nn.Module):
    def __init__(self):
        raise RuntimeError("cannot be built")


MODULES = {
    cls.__name__: cls
    for cls in (
        Plain,
        InPlace,
        MutatesInput,
        MutatesBuffer,
        Constants,
        HeldConstant,
        NoGradRegion,
        AutocastRegion,
        Checkpointed,
        Branches,
        Breaks,
        BreaksInEveryLayer,
        ReadsValues,
        ManyOutputs,
        Tied,
        Dropout,
        BatchNorm,
        Recurrent,
        RelaysWithoutOperators,
        Unknown,
        Unrolled,
        Raises,
        NeverBuilds,
    )
}


class Oddities:
    name = "oddities"
    modules = MODULES

    def list(self):
        return (self.ref(name) for name in self.modules)

    def ref(self, name):
        return ModelRef(self.name, name, canonical_config({"class": name}), name.lower(), "test", "test", "1")

    def build(self, ref):
        return self.modules[ref.name]()

    def inputs(self, ref, model):
        if ref.name == "Tied":
            return ExampleInputs((torch.arange(6).reshape(2, 3),))
        return ExampleInputs((torch.linspace(-1, 1, 32).reshape(4, 8),))
