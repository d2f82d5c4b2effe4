"""Records from strangers: each is refused with the stated kind, or proven to do nothing but compute."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from warehouse.graph.constants import encode_tensor
from warehouse.graph.inputs import draw
from warehouse.graph.literals import dumps
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graph.to_fx import to_graph_module
from warehouse.graph.validate import validate

X = Node("placeholder", slot=0, role="input", name="x", dtype="float32", shape=(2, 2), device="cpu")
OUT = Node("output", value="none", args='["%1"]')
RELU = Node("call_function", "torch.relu", '["%1"]', dtype="float32", shape=(2, 2))
CONSTANT = Node("constant", args=encode_tensor(torch.ones(2)), dtype="float32", shape=(2,))
BODY = Node("get_attr", "body_0", value="other")
HOOK = Node("call_function", "torch.ops.higher_order.wrap", '["%1","%2"]', value="tuple", effect=0)
MARK = "passnet_was_here"
CODE = f"'); import sys; sys.{MARK} = 1; ('"


def graph(*rows: Node, bodies: tuple[GraphRecord, ...] = ()) -> GraphRecord:
    return GraphRecord(rows, bodies)


def call(
    target: str, args: str = '["%1"]', kwargs: str = "{}", op: str = "call_function", **more: object
) -> GraphRecord:
    node = Node(op, target, args, kwargs, dtype="float32", shape=(2, 2))
    return graph(X, replace(node, **more), OUT)  # type: ignore[arg-type]


def constant(dtype: object, size: object, text: object, /, **columns: object) -> GraphRecord:
    args = dumps([{"dtype": dtype}, {"size": size}, {"str": text}])
    return graph(replace(CONSTANT, args=args, **columns), OUT)  # type: ignore[arg-type]


def nested(depth: int) -> GraphRecord:
    inner = graph(X, OUT)
    for _ in range(depth):
        inner = graph(X, BODY, HOOK, OUT, bodies=(inner,))
    return inner


ZEROS = "AAAAAAAAAAA="  # eight bytes
AUTOCAST = '[{"str":"cpu"},null,true,null]'
OFF_THE_LIST = {
    "reading a file": call("torch.from_file", '[{"str":"/etc/passwd"}]'),
    "attrgetter": call("operator.attrgetter", '[{"str":"__class__"}]'),
    "methodcaller": call("operator.methodcaller", '[{"str":"data_ptr"}]'),
    "itemgetter": call("operator.itemgetter", "[0]"),
    "default device": call("torch.set_default_device", '[{"str":"meta"}]'),
    "default dtype": call("torch.set_default_dtype", '[{"dtype":"float16"}]'),
    "thread count": call("torch.set_num_threads", "[1]"),
    "seeding": call("torch.manual_seed", "[0]"),
    "torch.load": call("torch.load", '[{"str":"x.pt"}]'),
    "torch.save": call("torch.save", '["%1",{"str":"x.pt"}]'),
    "loading a library": call("torch.ops.load_library", '[{"str":"evil.so"}]'),
    "torch.compile": call("torch.compile"),
    "eval": call("builtins.eval", '[{"str":"1"}]'),
    "exec": call("builtins.exec", '[{"str":"1"}]'),
    "free getattr": call("builtins.getattr", '["%1",{"str":"__class__"}]'),
    "open": call("builtins.open", '[{"str":"/etc/passwd"}]'),
    "import": call("builtins.__import__", '[{"str":"os"}]'),
    "os.system": call("os.system", '[{"str":"true"}]'),
    "a way round the root": call("torch.os.system", '[{"str":"true"}]'),
    "walk through a function": call("torch.relu.__globals__"),
    "dunder of a tensor": call("torch.Tensor.__reduce__", op="call_method"),
    "attribute __class__": call("torch.Tensor.__class__"),
    "attribute grad_fn": call("torch.Tensor.grad_fn"),
    "free attribute": call("torch.Tensor.anything"),
    "data pointer": call("torch.Tensor.data_ptr", op="call_method"),
    "set_": call("torch.Tensor.set_", op="call_method"),
    "numpy": call("torch.Tensor.numpy", op="call_method"),
    "apply_": call("torch.Tensor.apply_", op="call_method"),
    "hook": call("torch.Tensor.register_hook", op="call_method"),
    "shared memory": call("torch.Tensor.share_memory_", op="call_method"),
    "pickle": call("pickle.loads", '[{"str":"x"}]'),
    "private operator": call("torch.ops.transformers.grouped_mm_fallback"),
    "empty target": call(""),
    "alias in place of the stored name": call("torch.absolute"),
    "code as a target": call(CODE),
    "a very long target": call("torch." + "a" * 100_000),
    "line break in a target": call("torch.relu\nimport os"),
    "trailing space": call("torch.relu "),
}
INVALID = {
    "no rows": graph(),
    "no output": graph(X, RELU),
    "two outputs": graph(X, OUT, OUT),
    "output in the middle": graph(X, OUT, RELU),
    "output with two arguments": graph(X, replace(OUT, args='["%1","%1"]')),
    "output without argument": graph(X, replace(OUT, args="[]")),
    "unknown op": graph(X, replace(RELU, op="call_module"), OUT),
    "unknown value kind": graph(X, replace(RELU, value="callable"), OUT),
    "self reference %0": call("torch.relu", '["%0"]'),
    "forward reference": call("torch.relu", '["%-1"]'),
    "reference before the first row": call("torch.relu", '["%2"]'),
    "reference far outside": call("torch.relu", '["%999999999"]'),
    "reference with leading zero": call("torch.relu", '["%01"]'),
    "reference in a dictionary key": call("torch.relu", '[{"dict":[["%1",1]]}]'),
    "reference as a size": call("torch.relu", '[{"size":["%1"]}]'),
    "bare string": call("torch.relu", '["__import__"]'),
    "not JSON": call("torch.relu", "[%1]"),
    "arguments that are an object": call("torch.relu", "{}"),
    "keywords that are a list": call("torch.relu", '["%1"]', "[]"),
    "NaN word": call("torch.add", '["%1",NaN]'),
    "Infinity word": call("torch.add", '["%1",-Infinity]'),
    "float beyond JSON": call("torch.add", '["%1",1e999]'),
    "integer of 65 bits": call("torch.add", f'["%1",{2**64}]'),
    "integer of 10,000 digits": call("torch.add", '["%1",' + "9" * 10_000 + "]"),
    "deep JSON": call("torch.relu", "[" * 100_000 + "]" * 100_000),
    "deep literal": call("torch.relu", '["%1",' + "[" * 30 + "]" * 30 + "]"),
    "a list of a million items": call("torch.cat", dumps([["%1"] * 1_000_000])),
    "two-key literal": call("torch.relu", '[{"str":"a","tuple":[]}]'),
    "unknown literal": call("torch.relu", '[{"object":"os"}]'),
    "unknown dtype": call("torch.Tensor.to", '["%1",{"dtype":"object"}]', op="call_method"),
    "dunder dtype": call("torch.Tensor.to", '["%1",{"dtype":"__class__"}]', op="call_method"),
    "unknown layout": call("torch.zeros", '[2]', '{"layout":{"layout":"mkldnn"}}'),
    "unknown memory format": call("torch.zeros", '[2]', '{"memory_format":{"memory_format":"x"}}'),
    "device cuda:999": call("torch.zeros", "[2]", '{"device":{"device":"cuda:999"}}'),
    "unknown device": call("torch.zeros", "[2]", '{"device":{"device":"privateuseone"}}'),
    "text of a megabyte": call("torch.einsum", dumps([{"str": "i" * (1 << 20)}, "%1"])),
    "code as keyword": call("torch.relu", '["%1"]', dumps({"x=print(1)": 1})),
    "Python word as keyword": call("torch.relu", '["%1"]', '{"import":1}'),
    "dunder keyword": call("torch.relu", '["%1"]', '{"__class__":1}'),
    "line break in keyword": call("torch.relu", '["%1"]', '{"a\\n":1}'),
    "method on a literal": call("torch.Tensor.view", '[{"str":"x"},2]', op="call_method"),
    "method called as a function": call("torch.Tensor.view", '["%1",4]'),
    "function called as a method": call("torch.relu", op="call_method"),
    "attribute with a name argument": call("torch.Tensor.T", '["%1",{"str":"__class__"}]'),
    "attribute of a literal": call("torch.Tensor.T", '[{"str":"x"}]'),
    "arithmetic on literals alone": call("operator.pow", "[10,1000000000]"),
    "arithmetic on text": call("operator.mul", '["%1",{"str":"x"}]'),
    "operator with too many arguments": call("operator.add", '["%1","%1","%1"]'),
    "operator with too few arguments": call("operator.add"),
    "negative size": graph(replace(X, shape=(-1, 2)), OUT),
    "size of 2**60": graph(replace(X, shape=(2**60,)), OUT),
    "sizes that multiply to 2**40": graph(replace(X, shape=(2**20, 2**20)), OUT),
    "boolean as a size": graph(replace(X, shape=(True, 2)), OUT),
    "text as a size": graph(replace(X, shape=("2",)), OUT),  # type: ignore[arg-type]
    "a hundred dimensions": graph(replace(X, shape=(1,) * 100), OUT),
    "strides of another rank": graph(replace(X, stride=(1,)), OUT),
    "negative stride": graph(replace(X, stride=(-2, 1)), OUT),
    "strides that span 2**50": graph(replace(X, stride=(2**50, 1)), OUT),
    "column dtype unknown": graph(replace(X, dtype="object"), OUT),
    "column device unknown": graph(replace(X, device="cuda:1"), OUT),
    "tensor without dtype": graph(replace(X, dtype=None), OUT),
    "duplicate slots": graph(X, X, OUT),
    "missing slot": graph(replace(X, slot=1), OUT),
    "negative slot": graph(replace(X, slot=-1), OUT),
    "no slot": graph(replace(X, slot=None), OUT),
    "unknown role": graph(replace(X, role="admin"), OUT),
    "placeholder with a target": graph(replace(X, target="x=print(1)"), OUT),
    "placeholder with a default": graph(replace(X, args='[{"str":"x"}]'), OUT),
    "effect on a pure call": call("torch.relu", effect=0),
    "writing without effect": call("torch.Tensor.add_", '["%1",1]', op="call_method"),
    "effect out of order": call("torch.Tensor.add_", '["%1",1]', op="call_method", effect=5),
    "recipe on a call": call("torch.relu", recipe="{}"),
    "get_attr outside bodies": graph(X, BODY, OUT),
    "get_attr of a name": graph(X, replace(BODY, target="__class__"), OUT, bodies=(graph(X, OUT),)),
    "get_attr with a path": graph(X, replace(BODY, target="body_0.forward"), OUT, bodies=(graph(X, OUT),)),
    "body that nobody reads": graph(X, OUT, bodies=(graph(X, OUT),)),
    "nested graph as a value": graph(X, BODY, replace(RELU, args='["%1"]'), OUT, bodies=(graph(X, OUT),)),
    "nested graph returned": graph(X, BODY, OUT, bodies=(graph(X, OUT),)),
    "higher order without nested graph": call("torch.ops.higher_order.wrap", effect=0),
    "fault inside a nested graph": graph(X, BODY, HOOK, OUT, bodies=(graph(X),)),
    "nested bomb": nested(200),
    "autocast never closed": call("torch.amp.autocast_mode._enter_autocast", AUTOCAST, effect=0),
    "autocast closed twice": call("torch.amp.autocast_mode._exit_autocast", '["%1"]', effect=0),
    "grad mode of a tensor": call("torch._C._set_grad_enabled", '["%1"]', effect=0),
    "autograd switch never reset": call(
        "torch._C._functorch.set_inplace_requires_grad_allowed", "[true]", effect=0
    ),
    "grad mode of two values": call("torch._C._set_grad_enabled", "[true,false]", effect=0),
    "vmap level never left": call(
        "torch._functorch.predispatch._vmap_increment_nesting", '[2,{"str":"error"}]', effect=0
    ),
    "constant too long for its shape": constant("float32", [1], ZEROS, shape=(1,)),
    "constant too short for its shape": constant("float32", [2**30], ZEROS, shape=(2**30,)),
    "constant above the limit": constant("float32", [2], "A" * 200_000),
    "constant that is not base64": constant("float32", [2], "!!"),
    "constant in base64 with loose bits": constant("float32", [2], ZEROS.replace("A=", "B=")),
    "constant of unknown dtype": constant("object", [0], ""),
    "constant of negative size": constant("float32", [-1, -2], ZEROS),
    "constant of huge empty size": constant("float32", [0, 2**39, 2**39], "", shape=(0, 2**39, 2**39)),
    "constant with size of text": constant("float32", "", ZEROS),
    "constant with size of a boolean": constant("float32", [True, 2], ZEROS),
    "constant with booleans of 2": constant("bool", [2], "AgI=", dtype="bool"),
    "constant whose columns lie": graph(replace(CONSTANT, shape=(3,)), OUT),
    "constant that is a pickle": graph(replace(CONSTANT, args='["gASVAAAA"]'), OUT),
    "constant that is an object": graph(replace(CONSTANT, args='{"dtype":"float32"}'), OUT),
    "target that is no text": call(None),  # type: ignore[arg-type]
    "arguments that are no text": call("torch.relu", ["%1"]),  # type: ignore[arg-type]
    "name that is no text": graph(replace(X, name=3), OUT),  # type: ignore[arg-type]
}  # fmt: skip


def test_the_rows_these_records_are_made_of_are_valid_themselves():
    assert torch.equal(to_graph_module(call("torch.relu"))(-torch.ones(2, 2)), torch.zeros(2, 2))
    validate(graph(X, CONSTANT, OUT))
    validate(nested(3))


@pytest.mark.parametrize("case", OFF_THE_LIST)
def test_an_operator_off_the_list_is_refused(case):
    with pytest.raises(RecordError, match="row 1: .*") as refused:
        to_graph_module(OFF_THE_LIST[case])
    assert refused.value.kind == "operator_not_listed"
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


@pytest.mark.parametrize("case", INVALID)
def test_a_malformed_record_is_refused(case):
    with pytest.raises(RecordError) as refused:
        to_graph_module(INVALID[case])
    assert refused.value.kind == "record_invalid"
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_a_record_of_a_million_rows_is_refused_before_it_is_read():
    with pytest.raises(RecordError, match="more than 500000 nodes"):
        to_graph_module(graph(X, *[RELU] * 500_000, OUT))


HOSTILE_TEXT = [
    CODE,
    '"); import sys; sys.' + MARK + ' = 1; ("',
    "x\nimport sys; sys." + MARK + " = 1",
    "\\'); import sys; sys." + MARK + " = 1 #",
    "'''\n\"\"\"\r\x0c\u2028\x00{0.__class__}{}%s",
    f"__import__('sys').__dict__.update({MARK}=1)",
    "\ud800",
]


@pytest.mark.parametrize("text", HOSTILE_TEXT)
def test_text_that_looks_like_code_stays_text(text):
    """Where text is legitimate it comes back from the printed, compiled and run module unchanged."""
    returned = dumps([["%1", {"str": text}, {"dict": [[{"str": text}, {"tuple": [{"str": text}]}]]}]])
    module = to_graph_module(graph(replace(X, name=text), replace(OUT, args=returned)))
    x = torch.ones(2, 2)
    scope: dict[str, object] = {"inf": float("inf"), "nan": float("nan"), "NoneType": type(None), "torch": torch}
    exec(compile(module.code, "<graph>", "exec"), scope)  # what torch.fx itself does
    for result in (module(x), scope["forward"](module, x)):  # type: ignore[operator]
        assert result[0] is x
        assert result[1:] == [text, {text: (text,)}]
    assert not hasattr(sys, MARK)


NAMES = [
    "self",
    "torch",
    "None",
    "True",
    "print",
    "class",
    "device",
    "inf",
    "",
    "1",
    "é",
    "x" * 10_000,
    "_",
    "a.b",
    "a-b",
]


@pytest.mark.parametrize("name", NAMES + HOSTILE_TEXT)
def test_names_of_placeholders_are_made_into_identifiers_and_kept_apart(name):
    rows = [replace(X, name=name, slot=i, role=role) for i, role in enumerate(["input", "input", "parameter"])]
    module = to_graph_module(graph(*rows, replace(OUT, args='[["%3","%2","%1"]]')))
    names = [n.target for n in module.graph.nodes if n.op == "placeholder"]
    assert len(set(names)) == 3 and all(n.isidentifier() and n.isascii() and len(n) < 100 for n in names)
    values = [torch.full((2, 2), float(i)) for i in range(3)]
    assert all(a is b for a, b in zip(module(*values), values, strict=True))
    assert not hasattr(sys, MARK)


RECIPES = {
    "no kind": "{}",
    "unknown kind": '{"kind":"exec"}',
    "not an object": "[]",
    "empty range": '{"kind":"index","low":5,"high":5}',
    "text for a number": '{"kind":"index","low":"a","high":"b"}',
    "missing number": '{"kind":"normal"}',
    "not JSON": "{kind}",
    "code": '{"kind":"constant","value":"__import__"}',
}


@pytest.mark.parametrize("case", RECIPES)
def test_a_recipe_that_is_none_is_refused(case):
    with pytest.raises(RecordError) as refused:
        draw(graph(replace(X, dtype="int64", recipe=RECIPES[case]), OUT), seed=0)
    assert refused.value.kind == "record_invalid"


def test_inputs_of_terabytes_are_refused_before_they_are_drawn():
    with pytest.raises(RecordError, match="elements"):
        draw(graph(replace(X, shape=(2**39,)), OUT), seed=0)
    with pytest.raises(RecordError, match="elements"):
        draw(graph(replace(X, stride=(2**39, 1)), OUT), seed=0)
