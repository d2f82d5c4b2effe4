"""Small models that call a block many times, each with one thing that makes two calls differ, or seem to."""

from __future__ import annotations

import functools
import random

import torch
from torch import nn
from torch.nn import functional as F

from tests.extract.oddities import Oddities


class Block(nn.Module):
    def __init__(self, slope=0.1):
        super().__init__()
        self.linear, self.norm, self.slope = nn.Linear(8, 8), nn.LayerNorm(8), slope
        self.register_buffer("shift", torch.ones(8))

    def forward(self, x):
        return x + F.leaky_relu(self.norm(self.linear(x)) + self.shift, self.slope)


class Stack(nn.Module):
    """The model: blocks in a row."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def alike():
    return Stack(Block() for _ in range(4))


def other_numbers():
    return Stack(Block(slope) for slope in (0.1, 0.2, 0.1, -0.0, 0.0))


def other_sizes():
    class Narrowing(nn.Linear):
        def forward(self, x):
            return super().forward(x).relu()

    return Stack([Narrowing(8, 8), Narrowing(8, 6), Narrowing(6, 6), Narrowing(6, 6)])


def one_block_often():
    return Stack([Block()] * 4)


def tied_weights():
    blocks = [Block() for _ in range(4)]
    blocks[2].linear.weight = blocks[0].linear.weight
    return Stack(blocks)


def tied_inside():
    class Two(nn.Module):
        def __init__(self, tie):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            if tie:
                self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    return Stack(Two(tie) for tie in (False, True, True, False))


def in_place():
    class Relu(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            y = F.relu(self.linear(x), inplace=True)
            y += x
            return y

    return Stack(Relu() for _ in range(3))


def changes_its_argument():
    class Doubles(nn.Module):
        def forward(self, x):
            return x.mul_(2).sin_()

    return Stack([nn.Linear(8, 8), Doubles(), Doubles(), Doubles()])


def fills_a_cache():
    class Caching(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = {}

        def forward(self, x):
            if "seen" in self.cache:
                return x * 2
            self.cache["seen"] = True
            return x + 1

    blocks = [Caching() for _ in range(3)]
    return Stack([blocks[0], blocks[0], blocks[1], blocks[0], blocks[2], blocks[1]])


def sets_an_attribute():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    return Stack([Counting()] * 3 + [Counting()])


_CALLS = 0


def counts_in_a_global():
    class Counting(nn.Module):
        def forward(self, x):
            global _CALLS
            _CALLS += 1
            return x + _CALLS

    return Stack(Counting() for _ in range(3))


class Meter:
    def __init__(self):
        self.calls = 0


def counts_in_an_object():
    class Counting(nn.Module):
        def __init__(self, meter):
            super().__init__()
            self.meter = meter

        def forward(self, x):
            self.meter.calls += 1
            return x + self.meter.calls

    class Reading(Counting):
        def forward(self, x):
            return x * self.meter.calls

    one, other = Meter(), Meter()
    return Stack(kind(meter) for meter in (one, other, one) for kind in (Reading, Reading, Counting, Reading, Reading))


_SHELF = Meter()


def collects_out_of_sight():
    class Collecting(nn.Module):
        def forward(self, x):
            y = x * 2
            _SHELF.calls.append(y)
            return y

    class Counting(nn.Module):
        def forward(self, x):
            return x + len(_SHELF.calls)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(kind() for _ in range(3) for kind in (Collecting, Counting, Counting))

        def forward(self, x):
            _SHELF.calls = found = []
            for block in self.blocks:
                x = block(x)
            _SHELF.calls = 0
            return x, found

    return Model()


def draws_a_number():
    class Drawing(nn.Module):
        def forward(self, x):
            return x * random.random()

    return Stack(Drawing() for _ in range(3))


def knows_its_place():
    class Placed(nn.Module):
        def __init__(self, index):
            super().__init__()
            self.index = index

        def forward(self, x):
            return x.sin() if self.index % 2 else x.cos()

    return Stack(Placed(i) for i in range(4))


def knows_its_parent():
    class Child(nn.Module):
        def forward(self, x):
            return x + 1 if self is self.parent[0].blocks[0] else x * 2

    model = Stack(Child() for _ in range(3))
    for block in model.blocks:
        block.parent = [model]
    return model


def collects_in_a_list():
    class Dense(nn.Module):
        def forward(self, found):
            return torch.cat(found, 1)[:, :8] * 2

    class Appending(nn.Module):
        def forward(self, found):
            found.append(found[-1] + 1)
            return found[-1]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense, self.appending = Dense(), Appending()

        def forward(self, x):
            found = [x, x.sin()]
            for _ in range(3):
                found.append(self.dense(found[:2]))
                self.appending(found[:1])
                self.appending(found)
            return found

    return Model()


def many_results():
    class Splits(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            left, right = self.linear(x).chunk(2, 1)
            return left, [right, None, (x, self.linear.bias)]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Splits() for _ in range(3))

        def forward(self, x):
            for block in self.blocks:
                left, (right, _, (x, bias)) = block(x)
                x = torch.cat([left, right], 1) + x + bias
            return x

    return Model()


def returns_its_argument():
    return Stack([nn.Identity(), nn.Linear(8, 8), nn.Identity(), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.5)])


def weights_as_arguments():
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))

        def forward(self, x, weight, scale=1.0):
            return x * weight * self.weight * scale

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Takes() for _ in range(4))
            self.weight, self.scale = nn.Parameter(torch.ones(8)), 2.0

        def forward(self, x):
            x = self.blocks[0](x, self.blocks[0].weight)
            x = self.blocks[1](x, self.blocks[2].weight, scale=self.scale)
            x = self.blocks[2](x, self.blocks[2].weight, scale=self.scale)
            return self.blocks[3](x, self.weight, scale=3.0)

    return Model()


def hooked():
    model = Stack(Block() for _ in range(3))
    model.blocks[1].register_forward_hook(lambda module, args, result: result * 2)
    return model


def own_forward():
    model = Stack(Block() for _ in range(3))
    model.blocks[1].forward = lambda x: x - 1
    return model


def other_functions():
    class Acts(nn.Module):
        def __init__(self, act):
            super().__init__()
            self.act = act

        def forward(self, x):
            return self.act(x)

    steep = functools.partial(F.leaky_relu, negative_slope=0.3)
    same = functools.partial(F.leaky_relu, negative_slope=0.3)
    return Stack(Acts(a) for a in (steep, same, functools.partial(F.leaky_relu, negative_slope=0.1), torch.sin))


def under_autocast():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x):
            x = self.blocks[0](x)
            with torch.autocast(x.device.type, dtype=torch.bfloat16):
                x = self.blocks[1](x)
                x = self.blocks[2](x)
            return self.blocks[3](x.float())

    return Model()


def with_constants():
    class Adds(nn.Module):
        def forward(self, x):
            return x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], device=x.device)

    return Stack(Adds() for _ in range(3))


def shared_argument():
    class Mixes(nn.Module):
        def forward(self, x, y):
            return x.sin() + y

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Mixes() for _ in range(3))

        def forward(self, x):
            y = x + 1
            return self.blocks[2](self.blocks[1](y, y), self.blocks[0](x, y))

    return Model()


def breaks_in_between():
    class Breaking(nn.Module):
        def forward(self, x):
            torch._dynamo.graph_break()
            return x + 1

    return Stack([Block(), Block(), Breaking(), Block(), Block()])


_MAKERS = (
    alike,
    other_numbers,
    other_sizes,
    one_block_often,
    tied_weights,
    tied_inside,
    in_place,
    changes_its_argument,
    fills_a_cache,
    sets_an_attribute,
    counts_in_a_global,
    counts_in_an_object,
    collects_out_of_sight,
    draws_a_number,
    knows_its_place,
    knows_its_parent,
    collects_in_a_list,
    many_results,
    returns_its_argument,
    weights_as_arguments,
    hooked,
    own_forward,
    other_functions,
    under_autocast,
    with_constants,
    shared_argument,
    breaks_in_between,
)


class Repeating(Oddities):
    name = "repeating"
    modules = {make.__name__: make for make in _MAKERS}
