"""A stored graph rebuilds into the same graph, and that graph computes the same values."""

from __future__ import annotations

import copy
from dataclasses import fields, replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from warehouse.graph.constants import MAX_BYTES, decode_tensor, encode_tensor
from warehouse.graph.from_fx import difference, from_graph_module
from warehouse.graph.literals import DTYPES
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graph.to_fx import to_graph_module
from warehouse.graph.validate import validate


def captured(function, *args, dynamic=False):
    """The only graph that Dynamo makes of a call, with the values it is called with."""
    found = []

    def backend(module, example_inputs):
        def called(*values):
            found.append((module, copy.deepcopy(values)))
            return module(*values)

        return called

    torch._dynamo.reset()
    torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(*args)
    assert len(found) == 1
    return found[0]


def pointwise(x, y):
    return F.gelu(x) * y + torch.where(x > 0, x, -float("inf")), x.clamp(min=-1, max=float("inf"))


def in_place(x, y):
    x.add_(1)
    x[:, 0] = 3.0
    z = F.relu(y, inplace=True)
    y += z
    return x * y


def regions(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y
    with torch.no_grad():
        w = z.float().exp()
    return z, w


def attributes(x, y):
    return x.T @ y.mT, torch.complex(x, y).real, x.permute(1, 0).T


def literals(x, y):
    c = torch.tensor([1.0, float("nan"), float("inf")])
    return x[..., None, 1:3], torch.full((2,), 3 + 4j), c, y.to(torch.float64, memory_format=torch.contiguous_format)


def split_and_joined(x, y):
    a, b = x.chunk(2, dim=1)
    values, indices = torch.cat([b, a], dim=1).topk(2)
    return {"values": values, "rest": [indices, (y.unbind(0)[1],)]}["rest"], values


def random_numbers(x, y):
    return F.dropout(x, 0.5) + torch.rand_like(y), torch.randn(2)


def checked(x, y):
    torch._check(x.shape[0] == y.shape[0])
    torch._assert_async((x == x).all(), "x is a number")
    return x - y


def nested(x, y):
    return checkpoint(lambda a, b: torch.sin(a) @ b, x, y, use_reentrant=False)


def branching(x, y):
    return torch.cond(x.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, (x, y))


def aliases(x, y):
    return torch.absolute(x).multiply(y), x.arctan(), torch.special.expit(y), torch.concat([x, y]), x.clip(0)


FUNCTIONS = [
    pointwise, in_place, regions, attributes, literals, split_and_joined, random_numbers, checked, nested, branching,
    aliases,
]  # fmt: skip


def tensors():
    torch.manual_seed(0)
    return torch.randn(4, 4), torch.randn(4, 4)


def run(module, values):
    """Outputs and the inputs as they are afterwards."""
    values = copy.deepcopy(values)
    torch.manual_seed(1)
    return module(*values), values


def assert_same(one, other):
    left, right = pytree.tree_leaves(one), pytree.tree_leaves(other)
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        if isinstance(a, torch.Tensor):
            assert a.dtype == b.dtype and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        else:
            assert a == b


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_stored_graph_is_the_same_graph_and_computes_the_same(function, dynamic):
    module, values = captured(function, *tensors(), dynamic=dynamic)
    record = from_graph_module(module)
    rebuilt = to_graph_module(record)
    assert difference(module, rebuilt) is None
    assert_same(run(module, values), run(rebuilt, values))


def test_training_a_stored_graph_gives_the_same_gradients():
    x, y = (t.requires_grad_() for t in tensors())
    module, values = captured(nested, x, y)
    rebuilt = to_graph_module(from_graph_module(module))
    gradients = []
    for graph in (module, rebuilt):
        inputs = [v.detach().clone().requires_grad_() for v in values]
        pytree.tree_leaves(graph(*inputs))[0].sum().backward()
        gradients.append([v.grad for v in inputs])
    assert_same(*gradients)


def test_nested_graphs_become_submodules_and_constants_buffers():
    record = from_graph_module(captured(branching, *tensors())[0])
    assert len(record.bodies) == 2
    assert {n for n, _ in to_graph_module(record).named_children()} == {"body_0", "body_1"}
    constant = Node("constant", args=encode_tensor(torch.arange(3)), dtype="int64", shape=(3,))
    module = to_graph_module(GraphRecord((constant, Node("output", value="none", args='[["%1"]]'))))
    assert torch.equal(dict(module.named_buffers())["constant_0"], torch.arange(3))
    assert torch.equal(module()[0], torch.arange(3))


def test_placeholders_come_first_and_in_slot_order():
    late = Node("placeholder", slot=0, role="input", name="a", dtype="float32", shape=(2,))
    early = replace(late, slot=1, name="b")
    sub = Node("call_function", "torch.sub", '["%2","%1"]', dtype="float32", shape=(2,))
    module = to_graph_module(GraphRecord((early, late, sub, Node("output", value="none", args='[["%1"]]'))))
    assert [n.op for n in module.graph.nodes][:2] == ["placeholder"] * 2
    assert module(torch.tensor([1.0, 1.0]), torch.tensor([5.0, 5.0]))[0].tolist() == [4.0, 4.0]  # b - a


def test_an_error_names_the_row_and_the_nested_graph():
    record = from_graph_module(captured(branching, *tensors())[0])
    body = record.bodies[1]
    row = next(i for i, n in enumerate(body.nodes) if n.op.startswith("call_"))
    rows = list(body.nodes)
    rows[row] = replace(rows[row], target="torch.ad")
    with pytest.raises(
        RecordError, match=rf"^body_1 row {row}: operator 'torch.ad' .* nearest listed name is torch.add;"
    ):
        validate(replace(record, bodies=(record.bodies[0], body.with_nodes(tuple(rows)))))


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=5),
    st.tuples(st.integers(-3, 2**70)), st.lists(st.integers(), max_size=2),
    st.sampled_from(["[]", "{}", '["%1"]', '[["%1","%2"]]', '{"out":"%1"}', "null", "[null]", '[{"size":[-1]}]',
                     "body_0", '[{"dict":[[{"str":"a"},"%1"]]}]', '[{"slice":["%1",null,null]}]',
                     '[{"complex":["%1",1]}]']),
)  # fmt: skip


@pytest.fixture(scope="module")
def records():
    return [from_graph_module(captured(f, *tensors())[0]) for f in (in_place, regions, literals, branching, checked)]


@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_a_record_with_any_field_replaced_is_valid_or_refused_and_never_breaks_the_reader(records, data):
    record = data.draw(st.sampled_from(records))
    row = data.draw(st.integers(0, len(record.nodes) - 1))
    name = data.draw(st.sampled_from([f.name for f in fields(Node)]))
    rows = list(record.nodes)
    rows[row] = replace(rows[row], **{name: data.draw(JUNK)})
    try:
        to_graph_module(record.with_nodes(tuple(rows)))
    except RecordError as error:
        assert error.kind in ("record_invalid", "operator_not_listed")
        assert len(str(error)) < 600


@pytest.mark.parametrize("name", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_constants_keep_every_bit_of_every_dtype(name, shape):
    dtype = DTYPES[name]
    size = torch.zeros((), dtype=dtype).element_size()
    top = 2 if name == "bool" else 256
    raw = torch.randint(0, top, (*shape, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    tensor = raw.view(dtype).reshape(shape)
    text = encode_tensor(tensor)
    again = decode_tensor(text)
    assert (again.dtype, again.shape) == (tensor.dtype, tensor.shape)
    if tensor.numel():
        assert torch.equal(again.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))
    assert encode_tensor(again) == text


def test_constants_of_unusual_memory_are_stored_by_value():
    base = torch.arange(12.0).reshape(3, 4)
    for tensor in (base.T, base[:, ::2], base.expand(2, 3, 4), torch.tensor([1 + 2j]).conj()):
        assert torch.equal(decode_tensor(encode_tensor(tensor)), tensor)


@pytest.mark.parametrize(
    "tensor",
    [torch.empty(2, device="meta"), torch.zeros(MAX_BYTES + 1, dtype=torch.int8), torch.eye(2).to_sparse()],
    ids=["no data", "large", "sparse"],
)
def test_constants_that_cannot_be_stored_by_value_are_refused(tensor):
    with pytest.raises(RecordError) as refused:
        encode_tensor(tensor)
    assert refused.value.kind == "graph_not_serialisable"


def test_constants_are_read_as_data_inside_a_fake_mode_too():
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    tensor = torch.arange(3)
    with FakeTensorMode(allow_non_fake_inputs=True):
        again = decode_tensor(encode_tensor(tensor))
    assert not isinstance(again, FakeTensor) and torch.equal(again, tensor)
