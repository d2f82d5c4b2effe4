"""Random graphs that look like models' graphs: externs, light operators, views, tuples, in-place writes, sizes."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.dedup.graphs import Builder
from warehouse.graph.record import GraphRecord

SHAPE = (4, 4)
LIGHT = ["torch.relu", "torch.sigmoid", "torch.Tensor.exp", "torch.Tensor.abs", "torch.Tensor.neg"]
BINARY = ["operator.add", "torch.mul", "operator.sub", "operator.truediv"]
VIEWS = ["torch.Tensor.contiguous", "torch.Tensor.t"]
IN_PLACE = ["torch.Tensor.add_", "operator.imul", "torch.Tensor.relu_"]


class Graphs(Builder):
    """A builder of square float32 graphs."""

    def any_call(self, target, *args, effect=False, **fields):
        return self.call(target, *args, effect=effect, shape=SHAPE, **fields)

    def halves(self, value):
        """A tuple of two halves and both members put together again."""
        both = self.call("torch.chunk", value, 2, 1, value="tuple", dtype=None, shape=None, elements=_HALVES)
        one, two = (self.call("operator.getitem", both, k, shape=(4, 2), stride=(4, 1)) for k in (0, 1))
        return one, two

    def joined(self, one, two):
        return self.any_call("torch.cat", [one, two], 1)


_HALVES = '[["float32",[4,2]],["float32",[4,2]]]'


@st.composite
def graphs(draw, most=25) -> GraphRecord:
    """A random graph that runs: every value a 4 by 4 float32 tensor, but for halves and their tuples."""
    build = Graphs()
    inputs = [build.input(shape=SHAPE) for _ in range(draw(st.integers(1, 3)))]
    values, halves = list(inputs), []
    values.append(build.any_call("torch.matmul", values[0], values[-1]))
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["light", "light", "binary", "binary", "extern", "view", "split", "join", "write"]))
        one = draw(st.sampled_from(values))
        if kind == "light":
            values.append(build.any_call(draw(st.sampled_from(LIGHT)), one))
        elif kind == "binary":
            other = draw(st.one_of(st.sampled_from(values), st.just(0.5)))
            values.append(build.any_call(draw(st.sampled_from(BINARY)), one, other))
        elif kind == "extern":
            values.append(build.any_call("torch.matmul", one, draw(st.sampled_from(values))))
        elif kind == "view":
            target = draw(st.sampled_from(VIEWS))
            values.append(build.any_call(target, one))
        elif kind == "split":
            halves.append(build.halves(one))
        elif kind == "join" and halves:
            values.append(build.joined(draw(st.sampled_from(halves))[0], draw(st.sampled_from(halves))[1]))
        elif kind == "write" and one not in inputs:
            target = draw(st.sampled_from(IN_PLACE))
            operands = (one,) if target.endswith("relu_") else (one, 0.5)
            values.append(build.any_call(target, *operands, effect=True))
    kept = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return build.output(*kept)
