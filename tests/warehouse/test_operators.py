"""Promises of the allow-list: what is on it, what never is, and what each call is known to do."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.utils import _pytree as pytree

from warehouse.graph import operators
from warehouse.graph.record import RecordError

#: Words that no listed name may hold as its last part: files, processes, settings, storage, pickles, hooks.
FORBIDDEN = {
    # fmt: off
    "from_file",
    "load",
    "save",
    "from_numpy",
    "frombuffer",
    "from_dlpack",
    "to_dlpack",
    "set_default_device",
    "set_default_dtype",
    "set_num_threads",
    "manual_seed",
    "seed",
    "initial_seed",
    "set_rng_state",
    "get_rng_state",
    "set_",
    "data_ptr",
    "numpy",
    "tolist",
    "apply_",
    "map_",
    "map2_",
    "register_hook",
    "share_memory_",
    "attrgetter",
    "methodcaller",
    "itemgetter",
    "getattr",
    "eval",
    "exec",
    "compile",
    "load_library",
    "backward",
    "storage",
    "untyped_storage",
    "resize_",
    "pin_memory",
    "record_stream",
    "as_subclass",
    "vmap",
    "fork",
    "wait",
    "import_ir_module",
    "asarray",
    "grad_fn",
    "__reduce__",
    "__class__",
    "__dict__",
    "delitem",
    "length_hint",
    # fmt: on
}


def test_nothing_that_reaches_beyond_tensors_is_listed():
    last = {name.rpartition(".")[2] for name in operators.LISTED}
    assert last.isdisjoint(FORBIDDEN)
    assert {n for n in last if n.startswith("__")} <= {"__len__"}


def test_every_listed_name_resolves_or_is_refused_with_the_torch_version():
    missing = []
    for name in operators.LISTED:
        try:
            found = operators.lookup(name)
        except RecordError as error:
            assert error.kind == "operator_not_listed" and torch.__version__ in str(error)
            missing.append(name)
            continue
        assert isinstance(found.fn, str) or callable(found.fn)
        if found.kind in ("method", "attribute"):
            assert hasattr(torch.Tensor, str(found.fn)), name
    assert len(missing) < 0.02 * len(operators.LISTED), missing


def test_names_survive_the_way_to_a_function_and_back():
    for name, (kind, _) in operators.LISTED.items():
        if kind in ("attribute", "method"):
            continue
        fn = operators._resolve(name)
        if fn is not None:
            first = operators.name_of(fn, "call_function")
            assert first is not None and operators.lookup(first).fn == fn


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [
        (torch._C._nn.gelu, "call_function", "torch.nn.functional.gelu"),
        (torch._C._nn.linear, "call_function", "torch.nn.functional.linear"),
        (
            torch._C._nn.scaled_dot_product_attention,
            "call_function",
            "torch.nn.functional.scaled_dot_product_attention",
        ),
        (torch.conv2d, "call_function", "torch.nn.functional.conv2d"),
        (torch.functional.einsum, "call_function", "torch.einsum"),
        (operator.getitem, "call_function", "operator.getitem"),
        (torch.ops.aten.sym_size.int, "call_function", "torch.ops.aten.sym_size"),
        ("view", "call_method", "torch.Tensor.view"),
        ("absolute", "call_method", "torch.Tensor.abs"),
        (torch.absolute, "call_function", "torch.abs"),
        (torch.ops.aten.numpy_T, "call_function", "torch.Tensor.T"),
        ("data_ptr", "call_method", None),
        ("T", "call_method", None),
        (getattr, "call_function", None),
        (torch.load, "call_function", None),
        ([], "call_function", None),
    ],
)
def test_live_targets_get_their_public_name(target, kind, name):
    assert operators.name_of(target, kind) == name


def test_an_unlisted_operator_is_refused_with_the_nearest_name_and_the_mend():
    with pytest.raises(
        RecordError, match=r"nearest listed name is torch.nn.functional.gelu; add it to .*operators.txt"
    ):
        operators.lookup("torch.nn.functional.gelus")
    with pytest.raises(RecordError, match="attribute '__class__'"):
        operators.attribute_name("__class__")


_X, _FNAME = object(), "torch.nn.functional."
CALLS = [
    # target, args, kwargs, effectful, written
    ("torch.add", [_X, _X], {}, False, ()),
    ("torch.add", [_X, _X], {"out": _X}, True, ("out",)),
    ("torch.Tensor.add_", [_X, _X], {}, True, (0,)),
    ("operator.iadd", [_X, 1], {}, True, (0,)),
    ("operator.setitem", [_X, 0, _X], {}, True, (0,)),
    (_FNAME + "relu", [_X], {}, False, ()),
    (_FNAME + "relu", [_X], {"inplace": False}, False, ()),
    (_FNAME + "relu", [_X, True], {}, True, (0,)),
    (_FNAME + "relu", [], {"input": _X, "inplace": True}, True, ("input",)),
    (_FNAME + "leaky_relu", [_X, 0.2, True], {}, True, (0,)),
    (_FNAME + "hardtanh", [_X, 0.0, 6.0, True], {}, True, (0,)),
    (_FNAME + "dropout", [_X, 0.1, False, False], {}, False, ()),
    (_FNAME + "dropout", [_X], {}, True, ()),
    (_FNAME + "dropout", [_X, 0.1], {"training": True}, True, ()),
    (_FNAME + "dropout", [_X, 0.1], {"training": _X}, True, ()),
    (_FNAME + "dropout", [_X, 0.1, False, True], {}, True, (0,)),
    (_FNAME + "alpha_dropout", [_X], {}, False, ()),
    ("torch.dropout", [_X, 0.1, False], {}, False, ()),
    ("torch.dropout_", [_X, 0.1, False], {}, True, (0,)),
    (_FNAME + "rrelu", [_X], {}, False, ()),
    (_FNAME + "rrelu", [_X], {"training": True}, True, ()),
    (_FNAME + "scaled_dot_product_attention", [_X, _X, _X], {}, False, ()),
    (_FNAME + "scaled_dot_product_attention", [_X, _X, _X, None, 0.1], {}, True, ()),
    (_FNAME + "scaled_dot_product_attention", [_X, _X, _X], {"dropout_p": _X}, True, ()),
    (_FNAME + "multi_head_attention_forward", [_X] * 10 + [0.1, _X, _X, False], {}, False, ()),
    (_FNAME + "multi_head_attention_forward", [_X] * 10 + [0.1, _X, _X, True], {}, True, ()),
    (_FNAME + "batch_norm", [_X, _X, _X, _X, _X, False], {}, False, ()),
    (_FNAME + "batch_norm", [_X, _X, _X, _X, _X, True], {}, True, (1, 2)),
    (_FNAME + "batch_norm", [_X, None, None], {"training": True}, False, ()),
    (
        _FNAME + "batch_norm",
        [_X],
        {"running_mean": _X, "running_var": _X, "training": True},
        True,
        ("running_mean", "running_var"),
    ),
    (_FNAME + "instance_norm", [_X], {}, False, ()),
    (_FNAME + "instance_norm", [_X, _X, _X], {"use_input_stats": True}, True, (1, 2)),
    ("torch.batch_norm", [_X, _X, _X, _X, _X, True, 0.1, 1e-5, True], {}, True, (3, 4)),
    (_FNAME + "embedding", [_X, _X, None, None], {}, False, ()),
    (_FNAME + "embedding", [_X, _X, None, 1.0], {}, True, (1,)),
    (_FNAME + "gumbel_softmax", [_X], {}, True, ()),
    ("torch.lstm", [_X, [_X, _X], [_X], True, 1, 0.0, True, False, True], {}, False, ()),
    ("torch.lstm", [_X, [_X, _X], [_X], True, 2, 0.5, True, False, True], {}, True, ()),
    ("torch.lstm", [_X, [_X, _X], [_X], True, 2, 0.5, False, False, True], {}, False, ()),
    ("torch.gru", [_X, _X, _X, [_X], True, 2, 0.5, True, False], {}, True, ()),
    ("torch.gru", [_X, _X, _X, [_X], True, 2, 0.5, False, False], {}, False, ()),
    ("torch.randn", [3], {}, True, ()),
    ("torch.zeros", [3], {}, False, ()),
    ("torch.Tensor.normal_", [_X], {}, True, (0,)),
    ("torch._check", [_X], {}, True, ()),
    ("torch._C._set_grad_enabled", [False], {}, True, ()),
]


@pytest.mark.parametrize(("target", "args", "kwargs", "effectful", "written"), CALLS)
def test_effects_are_told_call_by_call(target, args, kwargs, effectful, written):
    assert target in operators.LISTED
    assert operators.is_effectful(target, args, kwargs) is effectful
    assert operators.mutated_operands(target, args, kwargs) == written


def test_every_in_place_name_is_listed_as_writing_and_as_a_view_of_its_first_argument():
    for name, (kind, _) in operators.LISTED.items():
        last = name.rpartition(".")[2]
        if (
            kind in ("function", "method")
            and last.endswith("_")
            and last not in ("and_", "or_", "not_", "is_", "__len__")
        ):
            assert name in operators.MUTATING or last == "requires_grad_", name
            assert name in operators.VIEWS, name


SAMPLES = {
    "float": (torch.tensor([2.5, -1.0, 4.0]), torch.tensor([0.5, 3.0, 4.0])),
    "int": (torch.tensor([6, 3, 4]), torch.tensor([4, 5, 4])),
}


@pytest.mark.parametrize("name", sorted(operators.COMMUTATIVE))
def test_commutative_operators_do_commute(name):
    found = operators.lookup(name)
    fn = getattr(torch.Tensor, found.fn) if isinstance(found.fn, str) else found.fn
    if ".sym_" in name:
        assert fn(3, 5) == fn(5, 3)
        return
    integral = any(word in name for word in ("gcd", "lcm", "bitwise", "and_", "or_", "operator.xor"))
    a, b = SAMPLES["int" if integral else "float"]
    assert torch.equal(fn(a, b), fn(b, a))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_results_that_share_memory_with_their_argument_are_listed_as_views(dtype):
    """Calls every operator that does not write on a tensor, with several argument lists, and looks at the storages."""
    x = torch.ones(2, 2, dtype=dtype)
    found = set()
    for name, (kind, traits) in operators.LISTED.items():
        if "mutates" in traits or not name.startswith("torch.") or kind in ("region", "higher_order"):
            continue
        try:
            fn = operators.lookup(name).fn
        except RecordError:  # this release of torch lacks it
            continue
        for more in ((), (1,), (0, 1), ((4,),), (x,)):
            for first in (x, [x]):
                try:
                    if kind == "attribute":
                        result = getattr(first, str(fn))
                    else:
                        result = getattr(first, fn)(*more) if isinstance(fn, str) else fn(first, *more)
                except Exception:
                    continue
                leaves = [v for v in pytree.tree_leaves(result) if isinstance(v, torch.Tensor) and v.numel()]
                if any(v.layout == torch.strided and v.data_ptr() == x.data_ptr() for v in leaves):
                    found.add(name)
    assert found <= operators.VIEWS, found - operators.VIEWS
    assert len(found) > 80
