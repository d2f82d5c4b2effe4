"""What capturing promises: every graph, nothing executed, a class for every failure, and outputs that stay equal."""

import pytest

from extract.capture import capture
from extract.model import Variant
from extract.verify import outputs_equal
from tests.extract.oddities import Oddities

SOURCE = Oddities()
SURVIVE = [
    "Plain",
    "InPlace",
    "MutatesInput",
    "MutatesBuffer",
    "Constants",
    "HeldConstant",
    "NoGradRegion",
    "AutocastRegion",
    "Checkpointed",
    "Branches",
    "Breaks",
    "BreaksInEveryLayer",
    "ReadsValues",
    "ManyOutputs",
    "Tied",
    "Dropout",
    "BatchNorm",
    "Recurrent",
    "RelaysWithoutOperators",
]


def captured(name, variant="default", **kwargs):
    return capture(SOURCE, SOURCE.ref(name), Variant.parse(variant), **kwargs)


@pytest.mark.parametrize("name", SURVIVE)
def test_a_stored_graph_gives_the_modules_outputs_on_the_modules_weights(name):
    found = captured(name)
    assert found.failure is None, found.failure
    assert outputs_equal(SOURCE, found)


@pytest.mark.parametrize("name", ["Dropout", "BatchNorm", "Plain", "Checkpointed"])
def test_train_mode_graphs_give_the_modules_outputs_too(name):
    found = captured(name, "train")
    assert found.failure is None, found.failure
    assert outputs_equal(SOURCE, found)


@pytest.mark.parametrize("variant", ["float16", "bfloat16", "cpu"])
def test_other_dtypes_and_devices_survive(variant):
    found = captured("Plain", variant)
    assert found.failure is None
    wanted = {"cpu": "float32"}.get(variant, variant)
    tensors = [n for n in found.graphs[0].record.nodes if n.dtype]
    assert {n.dtype for n in tensors} == {wanted}
    assert {n.device for n in tensors} == {"cpu" if variant == "cpu" else "cuda"}


def test_symbolic_sizes_are_named_by_order_and_carry_example_values():
    record = captured("Plain", "symbolic").graphs[0].record
    symbols = [n for n in record.nodes if n.role == "symbol"]
    assert symbols and symbols[0].expr == "s0"
    assert any(n.expr and n.expr.startswith("[s0, ") and n.shape[0] == 4 for n in record.nodes)


def test_every_graph_of_a_model_with_breaks_is_kept_with_the_reasons():
    found = captured("Breaks")
    assert [g.index for g in found.graphs] == [0, 1, 2]
    assert len(found.breaks) == 2
    assert all("graph_break" in reason and "oddities.py" in reason for reason in found.breaks)


def test_equal_code_on_other_shapes_after_a_break_gives_graphs_of_its_own():
    shapes = [g.record.nodes[0].shape for g in captured("BreaksInEveryLayer").graphs]
    assert len(shapes) == 6 and len(set(shapes)) >= 4


def test_real_tensors_are_used_only_where_values_decide():
    assert captured("Plain").build == captured("Recurrent").build == "empty"
    assert captured("ReadsValues").build == "real"


def test_a_mutation_carries_an_order_token_and_a_pure_node_does_not():
    record = captured("InPlace").graphs[0].record
    tokens = [(n.target, n.effect) for n in record.nodes if n.effect is not None]
    assert [t for _, t in tokens] == list(range(len(tokens)))
    assert {"torch.Tensor.add_", "torch.Tensor.relu_", "operator.setitem", "operator.iadd"} <= {n for n, _ in tokens}


def test_dropout_is_random_in_train_mode_only():
    def effects(variant):
        return [n.target for n in captured("Dropout", variant).graphs[0].record.nodes if n.effect is not None]

    assert effects("train") == ["torch.nn.functional.dropout"] * 2
    assert effects("default") == []


def test_tied_weights_are_one_placeholder():
    record = captured("Tied").graphs[0].record
    assert len([n for n in record.nodes if n.role == "parameter"]) == 1


def test_parameters_and_inputs_keep_their_names_and_roles():
    found = {n.name: n.role for n in captured("Plain").graphs[0].record.nodes if n.op == "placeholder"}
    assert found == {
        "x": "input",
        "linear.weight": "parameter",
        "linear.bias": "parameter",
        "norm.weight": "parameter",
        "norm.bias": "parameter",
    }


@pytest.mark.parametrize(
    ("name", "kind", "stage"),
    [
        ("Unknown", "operator_not_listed", "record"),
        ("Raises", "forward_error", "trace"),
        ("NeverBuilds", "build_error", "build"),
        ("Unrolled", "node_budget", "trace"),
    ],
)
def test_a_failure_is_classed_with_its_place_and_never_raised(name, kind, stage):
    found = captured(name, node_budget=1000)
    assert (found.failure.kind, found.failure.stage) == (kind, stage), found.failure
    assert not found.graphs


def test_capturing_twice_gives_equal_records_and_hashes():
    assert captured("Breaks").graphs == captured("Breaks").graphs


def test_a_refused_operator_is_named():
    assert "oddities.secret" in captured("Unknown").failure.message


def test_peak_allocation_of_a_huge_model_is_only_metadata():
    import torch
    from torch import nn

    class Huge(Oddities):
        def build(self, ref):
            return nn.Sequential(*[nn.Linear(1 << 16, 1 << 16) for _ in range(4)])

        def inputs(self, ref, model):
            from extract.model import ExampleInputs

            return ExampleInputs((torch.zeros(1, 1 << 16),))

    source = Huge()
    found = capture(source, source.ref("Plain"), Variant())
    assert found.failure is None and found.build == "empty"
    assert found.parameters == 4 * ((1 << 32) + (1 << 16))
