"""Every failure gets a class of the closed list, a place, and text that is the same on every machine."""

import pytest
import torch

from extract.failures import CLASSES, classify, clean_text
from warehouse.graph.record import RecordError


def raised(error):
    try:
        raise error
    except BaseException as found:
        return found


def chained(outer, inner):
    try:
        try:
            raise inner
        except BaseException as cause:
            raise outer from cause
    except BaseException as found:
        return found


class DataDependentOutputException(RuntimeError):
    pass


@pytest.mark.parametrize(
    ("error", "stage", "kind"),
    [
        (ModuleNotFoundError("No module named 'detectron2'"), "build", "missing_dependency"),
        (
            ImportError("LevitModel requires the timm library but it was not found in your environment"),
            "build",
            "missing_dependency",
        ),
        (OSError("We couldn't connect to 'https://huggingface.co' to load the files"), "build", "needs_download"),
        (OSError("x/y is not a local folder and is not a valid model identifier listed on"), "build", "needs_download"),
        (MemoryError(), "build", "out_of_memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
            "trace",
            "out_of_memory",
        ),
        (NotImplementedError("Cannot copy out of meta tensor; no data!"), "build", "data_dependent"),
        (DataDependentOutputException("aten._local_scalar_dense.default"), "trace", "data_dependent"),
        (RuntimeError("Tensor.item() cannot be called on meta tensors"), "trace", "data_dependent"),
        (RuntimeError("Unhandled FakeTensor Device Propagation for aten.mm.default"), "trace", "fake_unsupported"),
        (RuntimeError("Found no NVIDIA driver on your system"), "trace", "fake_unsupported"),
        (TypeError("unsupported operand type(s) for //: 'NoneType' and 'int'"), "build", "config_invalid"),
        (RuntimeError("cannot be built"), "build", "build_error"),
        (LookupError("no inputs are known"), "inputs", "inputs_unknown"),
        (ValueError("anything at all"), "inputs", "inputs_unknown"),
        (ValueError("this model dislikes its input"), "trace", "forward_error"),
        (RecursionError("maximum recursion depth exceeded"), "trace", "trace_error"),
        (RecordError("operator_not_listed", "operator x is not listed"), "trace", "operator_not_listed"),
        (SystemExit(3), "worker", "exit"),
        (ValueError("?"), "worker", "unclassified"),
        (ValueError("this block requires the input to be divisible by 32"), "trace", "forward_error"),
        (ConnectionRefusedError("no"), "build", "needs_download"),
    ],
    ids=lambda v: type(v).__name__ + str(v)[:24] if isinstance(v, BaseException) else v,
)
def test_errors_are_classed_by_what_helps(error, stage, kind):
    failure = classify(raised(error), stage)
    assert failure.kind == kind
    assert failure.kind in CLASSES


def test_the_first_cause_that_says_something_decides():
    failure = classify(chained(RuntimeError("wrapped"), DataDependentOutputException("aten.nonzero.default")), "trace")
    assert failure.kind == "data_dependent"
    assert failure.exception == "DataDependentOutputException"


def test_a_record_error_inside_a_trace_belongs_to_recording():
    failure = classify(
        chained(RuntimeError("backend failed"), RecordError("graph_not_serialisable", "a generator")), "trace"
    )
    assert (failure.kind, failure.stage) == ("graph_not_serialisable", "record")


def test_dynamos_own_trouble_is_a_trace_error_and_the_models_is_not():
    from torch._dynamo.exc import InternalTorchDynamoError

    assert classify(chained(InternalTorchDynamoError("oops"), AssertionError("inner")), "trace").kind == "trace_error"

    def model(x):
        return torch.nn.functional.linear(x, torch.ones(3, 5))

    with pytest.raises(Exception) as caught:
        torch.compile(model, backend="eager")(torch.ones(2, 2))
    assert classify(caught.value, "trace").kind == "forward_error"


def test_the_place_is_the_innermost_frame_outside_torch():
    with pytest.raises(RuntimeError) as caught:
        torch.nn.Linear(2, 2)(torch.ones(3, 5))
    place = classify(caught.value, "trace").place
    assert place.startswith("extract/test_failures.py:") and "test_the_place" in place


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("object at 0x7f5d3c2b1a00 is bad", "object at 0x… is bad"),
        ("/home/me/env/lib/python3.11/site-packages/timm/models/vit.py failed", "timm/models/vit.py failed"),
        ("in /srv/app/code/zoo/model.py", "in zoo/model.py"),
        ("worker pid 12345 said", "worker pid … said"),
        ("/tmp/tmpab12cd_x/file", "tmp…/file"),
        ("https://huggingface.co/a/b/c", "https://huggingface.co/a/b/c"),
        ("in <eval_with_key>.17", "in …"),
        ("/a" * 200_000, "a/a"),
    ],
)
def test_text_is_rid_of_what_differs_between_machines(text, clean):
    assert clean_text(text) == clean


def test_long_texts_are_cut():
    assert len(clean_text("x" * 10_000)) == 500
    assert len(clean_text("\n".join("line" for _ in range(50))).splitlines()) == 6


def test_every_class_says_what_it_means():
    assert all(CLASSES.values()) and "unclassified" in CLASSES
