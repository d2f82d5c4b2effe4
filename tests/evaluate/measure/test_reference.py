"""The float64 form of a graph, and the distributions that it is compared on."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from evaluate.measure import reference, values
from warehouse.graph.record import GraphRecord, Node


def traced(call):
    return fx.GraphModule({}, fx.Tracer().trace(call))


def test_half_precision_inside_a_graph_does_not_reach_the_reference():
    module = traced(lambda x: (x.half() * 3).to(torch.bfloat16).float().softmax(-1, dtype=torch.float32))
    x = torch.randn(4, 9)
    exact = (x.double() * 3).softmax(-1)
    assert torch.equal(reference.run(module, [x]), exact)
    assert not torch.equal(module(x).double(), exact)


def test_integers_masks_and_symbols_stay_what_they_are():
    module = traced(lambda x, i, n: x[i] * n)
    x, i = torch.randn(4), torch.tensor([2, 0])
    assert torch.equal(reference.run(module, [x, i, 3]), x.double()[i] * 3)


def test_the_graph_and_its_inputs_are_left_alone():
    module = traced(lambda x: x.half().add_(1))
    code, x = module.code, torch.zeros(3)
    reference.run(module, [x])
    assert module.code == code and torch.equal(x, torch.zeros(3))


NORMAL = '{"kind":"normal","mean":0.0,"std":1.0}'


def record(recipe=NORMAL):
    x = Node("placeholder", name="x", role="input", slot=0, shape=(4, 6), dtype="float16", device="cpu", recipe=recipe)
    w = Node(
        "placeholder", name="w", role="parameter", slot=1, shape=(6,), dtype="float16", device="cpu", recipe=NORMAL
    )
    return GraphRecord((x, w, Node("output", value="none", args='[{"tuple":["%2","%1"]}]')))


@pytest.mark.parametrize("distribution", values.DISTRIBUTIONS)
def test_every_distribution_keeps_dtype_and_shape_and_is_finite(distribution):
    x, w = values.inputs(record(), distribution, seed=1)
    assert (x.dtype, x.shape, w.shape) == (torch.float16, (4, 6), (6,))
    assert x.isfinite().all()


def test_only_activations_are_varied():
    plain = values.inputs(record(), "recipe", 1)
    for name in ("small", "large", "integers", "rows"):
        x, w = values.inputs(record(), name, 1)
        assert torch.equal(w, plain[1]) and not torch.equal(x, plain[0])
    assert not torch.equal(values.inputs(record(), "reseeded", 1)[0], plain[0])
    x, _ = values.inputs(record(), "rows", 1)
    assert torch.equal(x, x[:, :1].expand(4, 6))
    x, _ = values.inputs(record(), "integers", 1)
    assert torch.equal(x, x.round())


def test_bounded_values_stay_inside_their_bounds():
    """A recipe that states bounds says what a bare run could have seen."""
    bounded = record(recipe='{"high":1.0,"kind":"normal","low":-1.0,"mean":0.0,"std":1.0}')
    assert torch.equal(values.inputs(bounded, "large", 1)[0], values.inputs(bounded, "recipe", 1)[0])


def test_strides_survive_a_distribution():
    x = torch.arange(12.0).as_strided((3, 4), (1, 3))
    (made,) = values.changed([x], [True], "small")
    assert made.stride() == (1, 3) and torch.equal(made, x * 1e-3)


def test_an_unknown_distribution_is_refused():
    with pytest.raises(ValueError, match="recipe"):
        values.inputs(record(), "cauchy", 0)
