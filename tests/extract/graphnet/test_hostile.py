"""A stranger's folder is read, never run; what cannot be read is a classed row with a place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from extract.failures import CLASSES
from extract.graphnet import samples
from extract.graphnet.job import payload, record_of, run
from extract.graphnet.problem import SampleError
from tests.extract.graphnet.written import MLP, MLP_META, forward, meta, write
from warehouse import staging
from warehouse.graph.record import RecordError
from warehouse.graphnet.layout import FACTS, MODEL, TASK_LIST, WEIGHTS
from warehouse.snapshot import Warehouse
from warehouse.storage import open_storage

X = meta("x", 2, 2)
WRITES = "open({canary!r}, 'w')"


def imported(sample: samples.Sample, warehouse: Path) -> dict[str, object]:
    """What the job leaves: the header of the staged capture."""
    Warehouse.open(warehouse, create=True)
    ref, variant = samples.describe(sample)
    summary = run(payload(sample, ref, variant, os.fspath(warehouse)), {"node_budget": 20_000})
    return staging.header(open_storage(warehouse), summary["capture_id"])


CODE = {
    "at module level": f"{WRITES}\n" + forward("return (x,)"),
    "in an import": "import os\n" + forward("return (x,)"),
    "in a decorator": forward("return (x,)").replace("    def", f"    @{WRITES}\n    def"),
    "in a base's keyword": forward("return (x,)").replace(
        "(torch.nn.Module)", f"(torch.nn.Module, metaclass={WRITES})"
    ),
    "in a class body": forward("return (x,)").replace("    def", f"    y = {WRITES}\n    def"),
    "in a default": forward("return (x,)", f"x={WRITES}"),
    "in __init__": forward("return (x,)").replace("    def", f"    def __init__(self):\n        {WRITES}\n    def"),
    "in forward": forward(f"{WRITES}\nreturn (x,)"),
    "through a builtin": forward("y = __import__('os').system('true')\nreturn (x,)"),
    "through an attribute": forward("y = x.__class__.__subclasses__()\nreturn (x,)"),
    "through torch": forward("y = torch.load({canary!r})\nreturn (y,)"),
    "through a registered library": forward("y = torch.ops.load_library({canary!r})\nreturn (x,)"),
    "in an f-string": forward("y = f'{{" + WRITES + "}}'\nreturn (x,)"),
    "in a comprehension": forward(f"y = [{WRITES} for z in (1,)]\nreturn (x,)"),
    "in a lambda": forward(f"y = (lambda: {WRITES})()\nreturn (x,)"),
}


@pytest.mark.parametrize("where", CODE)
def test_code_in_a_sample_is_refused_and_not_run(where: str, tmp_path: Path):
    canary = tmp_path / "canary"
    write(tmp_path / "s", CODE[where].format(canary=os.fspath(canary)), X)
    with pytest.raises((SampleError, RecordError)) as caught:
        record_of(os.fspath(tmp_path / "s"))
    assert caught.value.kind in ("syntax_unsupported", "operator_not_listed")
    assert caught.value.place.startswith("model.py:")  # type: ignore[union-attr]
    assert not canary.exists()


def test_code_in_the_metas_is_refused_and_not_run(tmp_path: Path):
    canary = tmp_path / "canary"
    for text in (f"open({os.fspath(canary)!r}, 'w')\n", X.replace("= 0.0", f"= open({os.fspath(canary)!r}, 'w')")):
        write(tmp_path / "s", forward("return (x,)"), text)
        with pytest.raises(SampleError) as caught:
            record_of(os.fspath(tmp_path / "s"))
        assert caught.value.kind == "meta_invalid"
    assert not canary.exists()


ODD = {
    "10 MB in a literal": (forward(f"y = x.to({'a' * 10_000_000!r})\nreturn (y,)"), X, "syntax_unsupported"),
    "10 MB in a name": (forward(f"y = x.{'a' * 10_000_000}()\nreturn (y,)"), X, "operator_not_listed"),
    "deep nesting": (forward(f"y = {'(' * 150}x{',)' * 150}\nreturn (y,)"), X, "syntax_unsupported"),
    "deeper nesting": (forward(f"y = {'-' * 100_000}x\nreturn (y,)"), X, "syntax_unsupported"),
    "no Python": ("class GraphModule(\x00", X, "syntax_unsupported"),
    "a cycle of names": (forward("y = z\nz = y\nreturn (y,)"), X, "syntax_unsupported"),
    "no return": (forward("y = x + 1"), X, "syntax_unsupported"),
    "code after return": (forward("return (x,)\ny = x + 1"), X, "syntax_unsupported"),
    "an enormous integer": (forward(f"y = x + {'9' * 4000}\nreturn (y,)"), X, "syntax_unsupported"),
    "a look-alike name": (forward("y = t\u043erch.add(x, x)\nreturn (y,)"), X, "operator_not_listed"),
    "an enormous shape": (forward("return (x,)"), meta("x", 2**40, 2**40), "meta_invalid"),
    "a negative shape": (forward("return (x,)"), meta("x", -1), "meta_invalid"),
    "an unknown dtype": (forward("return (x,)"), meta("x", 2, dtype="load"), "meta_invalid"),
    "data that does not fit": (forward("return (x,)"), meta("x", 2, data=[1.0]), "meta_invalid"),
    "the same meta twice": (forward("return (x,)"), X + X, "meta_invalid"),
    "a recipe that is none": (forward("return (x,)"), meta("x", 2, recipe="{'kind'}"), "meta_invalid"),
    "strides beyond memory": (forward("return (x,)"), meta("x", 2, stride=[2**62]), "meta_invalid"),
    "a wrong operand": (forward("y = x.view(3)\nreturn (y,)"), X, "forward_error"),
}


@pytest.mark.parametrize("oddity", ODD)
def test_an_odd_sample_is_a_row_with_class_and_place(oddity: str, tmp_path: Path):
    model, metas, kind = ODD[oddity]
    folder = write(tmp_path / "s", model, metas)
    header = imported(samples.Sample("s", os.fspath(folder)), tmp_path / "lake")
    (failure,) = header["failures"]  # type: ignore[misc]
    assert failure["class"] == kind and kind in CLASSES
    assert len(failure["message"]) <= 500 and failure["place"]
    assert header["captures"][0]["status"] == "failed" and not header["graphs"]  # type: ignore[index]


def test_files_that_are_no_files_are_refused(tmp_path: Path):
    folder = write(tmp_path / "s")
    for name, make in {
        "a link": lambda path: path.symlink_to("/etc/passwd"),
        "a pipe": lambda path: os.mkfifo(path),
        "a folder": lambda path: path.mkdir(),
        "not text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    }.items():
        path = folder / MODEL
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        make(path)
        with pytest.raises(SampleError) as caught:
            record_of(os.fspath(folder))
        assert caught.value.kind == "sample_refused", name


def test_a_missing_file_is_named(tmp_path: Path):
    for file in (MODEL, WEIGHTS, FACTS):
        folder = write(tmp_path / file.replace(".", "_"))
        (folder / file).unlink()
        (sample,) = samples.find(folder)
        (failure,) = imported(sample, tmp_path / "lake")["failures"]  # type: ignore[misc]
        assert (failure["class"], file in failure["message"]) == ("sample_incomplete", True)


def test_links_are_not_followed_out_of_the_folder_nor_round_in_circles(tmp_path: Path):
    outside = write(tmp_path / "outside" / "s")
    root = tmp_path / "root"
    write(root / "a" / "s")
    (root / "again").symlink_to(root)
    (root / "copy").symlink_to(root / "a")
    (root / "out").symlink_to(outside)
    found = {sample.name: sample.problem for sample in samples.find(root)}
    assert found == {"a/s": None, "out": "a link that leads out of the folder"}


def test_names_are_printable_whatever_a_folder_is_called(tmp_path: Path):
    names = ["line\nbreak", "bell\x07", "right\u202eleft", os.fsdecode(b"latin\xe9"), "o'hara; DROP TABLE models"]
    for name in names:
        write(tmp_path / "root" / name)
    found = list(samples.find(tmp_path / "root"))
    assert len(found) == len(names)
    for sample in found:
        assert sample.name.isprintable() and sample.name.encode()
        assert imported(sample, tmp_path / "lake")["captures"][0]["status"] == "complete"  # type: ignore[index]


def test_a_task_folder_gives_the_graphs_that_it_lists(tmp_path: Path):
    graphs = tmp_path / "checkout" / "graphs"
    write(graphs / "one" / "start0_end3")
    write(graphs / "two")
    write(tmp_path / "secret")
    task = tmp_path / "checkout" / "samples" / "ab" / "task"
    task.mkdir(parents=True)
    (task / "graphs").symlink_to("../../../graphs")
    lines = ["graphs/one/start0_end3", "graphs/../../secret", "/etc/passwd", ""]
    (task / TASK_LIST).write_text("\n".join(lines))
    found = {sample.name: sample.problem for sample in samples.find(task)}
    wrong = "a listed path that leads out of the graphs"
    assert found.pop("graphs/one/start0_end3") is None
    assert list(found.values()) == [wrong, wrong]
    (task / "graphs").unlink()
    (task / "graphs").symlink_to(tmp_path / "secret")
    assert [sample.problem for sample in samples.find(task)] == ["a link that leads out of the folder"]


def test_a_changed_sample_is_another_capture_and_an_equal_one_the_same(tmp_path: Path):
    folder = write(tmp_path / "root" / "s")
    (sample,) = samples.find(tmp_path / "root")
    first, variant = samples.describe(sample)
    assert samples.describe(sample) == (first, variant) and variant.name == "eval-static-float32-cuda"
    (folder / MODEL).write_text(MLP.replace("-3", "-4"))
    second, _ = samples.describe(sample)
    assert (second.config_hash, second.revision) != (first.config_hash, first.revision)
    (folder / WEIGHTS).write_text(MLP_META.replace("float32", "bfloat16").replace("cuda:0", "cpu"))
    assert samples.describe(sample)[1].name == "eval-static-bfloat16-cpu"
