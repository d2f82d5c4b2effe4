"""One bad subgraph costs itself alone: hangs, crashes and errors become rows, and the others are profiled.

Workers are forked, so a stand-in for the compiler that a test puts in place here reaches them.
"""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
import torch

from curate.profile import pool, run, worker
from curate.profile.inductor import Compiled
from curate.profile.results import Results
from tests.curate.profile.graphs import named, record, write

COMPILE_S = 3.0


def misbehave(module, graph, examples, mode):
    """Does what the number added in the graph stands for, instead of compiling it."""
    targets = [n.target for n in graph.nodes]
    if "torch.sin" in targets:
        time.sleep(60)
    if "torch.cos" in targets:
        os.kill(os.getpid(), signal.SIGKILL)
    if "torch.tan" in targets:
        raise RuntimeError("cannot lower tan")
    if "torch.exp" in targets:
        os._exit(7)
    if "torch.tanh" in targets:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    return Compiled(module, 0.5)


@pytest.fixture
def items(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "compile_ahead", misbehave)
    monkeypatch.setattr(run, "prepare", lambda scratch: None)
    x = torch.randn(8)
    calls = {
        "good": torch.relu,
        "hangs": torch.sin,
        "killed": torch.cos,
        "refused": torch.tan,
        "exits": torch.exp,
        "fills": torch.tanh,
        "nan": lambda v: torch.log(v - v - 1),
        "also good": torch.sigmoid,
    }
    return write(tmp_path / "items.parquet", {name: record(call, x) for name, call in calls.items()})


def profile(items, out, *more):
    arguments = [str(items), str(out), "--device", "cpu", "--compilers", "2", "--compile-seconds", str(COMPILE_S)]
    return run.run(run.parser().parse_args([*arguments, *more]))


def classes(out):
    names = {named(n): n for n in ("good", "hangs", "killed", "refused", "exits", "fills", "nan", "also good")}
    return {names[r["subgraph_hash"]]: r["class"] for r in Results(out).rows()}


def test_every_subgraph_gets_one_row_whatever_the_others_do(items, tmp_path, capsys):
    assert profile(items, tmp_path / "out") == 0
    assert classes(tmp_path / "out") == {
        "good": "ok",
        "hangs": "timeout",
        "killed": "crash",
        "refused": "compile_error",
        "exits": "crash",
        "fills": "out_of_memory",
        "nan": "non_finite",
        "also good": "ok",
    }
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["profiled"] == 8 and summary["classes"]["crash"] == 2 and summary["lost"] is None
    rows = {r["subgraph_hash"]: r for r in Results(tmp_path / "out").rows()}
    assert all(
        r["device"] == "cpu" and r["torch"] == torch.__version__ and r["mode"] == "default" for r in rows.values()
    )
    assert rows[named("hangs")]["stage"] == "compile" and "3 s" in rows[named("hangs")]["detail"]
    assert "SIGKILL" in rows[named("killed")]["detail"] and "7" in rows[named("exits")]["detail"]
    assert rows[named("good")]["eager_host_us"] > 0 and rows[named("good")]["eager_device_us"] is None


def test_a_second_run_does_only_what_is_left(items, tmp_path, capsys):
    out = tmp_path / "out"
    assert profile(items, out, "--limit", "1") == 0
    assert classes(out) == {"good": "ok"}
    assert profile(items, out, "--limit", "1") == 0
    assert set(classes(out)) == {"good", "hangs"}
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["skipped"] == 1


def test_no_minutes_means_no_work_and_a_polite_end(items, tmp_path, capsys):
    assert profile(items, tmp_path / "out", "--minutes", "0") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["profiled"] == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_one_line_and_exit_code_2(items, tmp_path, capsys):
    code = run.run(run.parser().parse_args([str(items), str(tmp_path / "out"), "--device", "cuda"]))
    said = capsys.readouterr()
    assert code == 2 and said.err.count("\n") == 1 and "--device cpu" in said.err


@pytest.mark.parametrize("content", [None, b"not parquet"])
def test_items_that_cannot_be_read_are_one_line_and_exit_code_2(tmp_path, capsys, content):
    path = tmp_path / "items.parquet"
    if content is not None:
        path.write_bytes(content)
    assert profile(path, tmp_path / "out") == 2
    assert "items.parquet" in capsys.readouterr().err


def test_a_device_that_is_lost_on_the_way_ends_the_run_with_code_3_and_loses_nothing(items, tmp_path, monkeypatch):
    """After the first worker nobody can open the device: what was done is kept, what was not has no row."""
    opened = worker.open_device
    flag = tmp_path / "lost"

    def lost(kind):
        if flag.exists():
            raise worker.NoDevice("the CUDA device does not answer")
        flag.touch()
        return opened(kind)

    monkeypatch.setattr(worker, "open_device", lost)
    monkeypatch.setattr(pool, "RECYCLE_AFTER", 1)
    out = tmp_path / "out"
    assert profile(items, out) == 3
    assert classes(out).get("good") == "ok" and len(classes(out)) < 8


def test_a_broken_context_ends_its_worker_and_is_tried_again(items, tmp_path, monkeypatch):
    """`_broken` stands for a CUDA context after an illegal access; on a CPU it is asked of nobody."""
    monkeypatch.setattr(worker.Device, "is_cuda", property(lambda self: False))
    row, broken = worker.profile(
        named("refused"), worker.Items.read(items), worker.open_device("cpu"), None, worker.Settings("cpu")
    )
    assert row["class"] == "compile_error" and not broken
