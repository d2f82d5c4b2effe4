"""`passnet profile`: what is chosen first, what is published, what stays, and one line for what cannot be done.

The worker program has tests of its own (tests/curate/profile); here a stand-in writes its rows, but for one real run.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from curate.profile.results import Results, blank
from flows import profile as flow
from flows import profile_tasks
from flows.unprofiled import Candidate, node_rows, ranked, unprofiled
from tests.flows.conftest import Passnet, refused, shared_server
from tests.warehouse import tiny
from warehouse.rows import records_from_table
from warehouse.schema import PROFILES
from warehouse.snapshot import Warehouse

SMALL = 6  # graphs of the tiny warehouse; all have few operators


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    tiny.publish(root)
    return root


def row(subgraph: str, device: str = "cpu", klass: str = "ok", **more: Any) -> dict[str, Any]:
    return {**blank(subgraph, "default"), "device": device, "class": klass, **more}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A program that finds every subgraph ok; the hashes that it was given, in order, call by call."""
    calls: list[list[str]] = []

    def program(items: Path, out: Path, request: flow.Request, progress: flow.Progress) -> None:
        table = pq.read_table(items).sort_by("priority")
        results = Results(out)
        done = results.finished("cpu", request.mode)
        todo = [h for h in dict.fromkeys(table.column("graph_hash").to_pylist()) if h not in done]
        calls.append(todo)
        for subgraph in todo:
            results.append(row(subgraph, eager_host_us=1.0, inductor_host_us=2.0, cause="host"))
        results.close()

    monkeypatch.setattr(profile_tasks, "_run_program", program)
    monkeypatch.setattr(profile_tasks, "identify", lambda device: "cpu")
    monkeypatch.setenv("PREFECT_API_URL", shared_server())
    return calls


def published(lake: Path) -> list[dict[str, Any]]:
    warehouse = Warehouse.open(lake)
    return warehouse.read(warehouse.snapshot(), "profiles").to_pylist()


def test_profiles_are_published_once_and_only_what_is_missing_is_measured(passnet: Passnet, lake: Path, stand_in):
    code, out, err = passnet("profile", "--warehouse", str(lake), "--device", "cpu", "--limit", "2", "--json")
    assert code == 0, err
    first = json.loads(out)
    assert (first["profiled"], first["skipped"], first["left"], first["device"]) == (2, 0, SMALL - 2, "cpu")
    code, out, _ = passnet("profile", "--warehouse", str(lake), "--device", "cpu", "--json")
    second = json.loads(out)
    assert (second["profiled"], second["skipped"], second["left"]) == (SMALL - 2, 2, 0)
    assert not set(stand_in[0]) & set(stand_in[1])
    assert len(published(lake)) == SMALL
    code, out, _ = passnet("profile", "--warehouse", str(lake), "--device", "cpu", "--json")
    assert json.loads(out)["snapshot"] == second["snapshot"] and len(stand_in) == 2, "nothing new, nothing started"


def test_the_closing_lines_say_how_many_are_slower_by_each_clock(passnet: Passnet, lake: Path, stand_in):
    code, out, _ = passnet("profile", "--warehouse", str(lake), "--device", "cpu")
    assert code == 0 and f"slower under Inductor end to end: {SMALL} of {SMALL} (100%)" in out
    assert "on the device" not in out, "a CPU has no such clock"


def test_profiles_of_another_device_stay(lake: Path):
    warehouse = Warehouse.open(lake)
    flow.publish(warehouse, [row("a" * 32, "NVIDIA H200")])
    flow.publish(warehouse, [row("a" * 32, "cpu")])
    assert [(r["subgraph_hash"][0], r["device"]) for r in published(lake)] == [("a", "NVIDIA H200"), ("a", "cpu")]


def test_a_row_tried_again_takes_the_place_of_the_earlier_one(lake: Path):
    warehouse = Warehouse.open(lake)
    flow.publish(warehouse, [row("a" * 32, klass="device_error"), row("b" * 32)])
    assert "a" * 32 in unprofiled(warehouse, warehouse.snapshot(), "cpu", "default").order
    flow.publish(warehouse, [row("a" * 32)])
    assert [(r["subgraph_hash"][0], r["class"]) for r in published(lake)] == [("a", "ok"), ("b", "ok")]


def test_structures_come_first_and_sizes_second_whatever_order_they_are_stored_in():
    every = [
        Candidate("a1", "A", 5),
        Candidate("a2", "A", 9),
        Candidate("b1", "B", 1),
        Candidate("c1", "C", 20),
        Candidate("c2", "C", 2),
    ]
    for _ in range(5):
        random.shuffle(every)
        assert ranked(every, every) == ["c1", "a2", "b1", "c2", "a1"]
    left = [c for c in every if c.subgraph_hash != "c1"]
    assert ranked(left, every) == ["a2", "b1", "c2", "a1"], "a structure with a profile waits behind one without"


def test_the_rows_handed_over_are_the_records(lake: Path):
    warehouse = Warehouse.open(lake)
    work = unprofiled(warehouse, warehouse.snapshot(), "cpu", "default")
    chosen = work.order[:3]
    table = node_rows(warehouse, warehouse.snapshot(), work.nodes, chosen)
    assert records_from_table(table) == {h: tiny.RECORDS[h] for h in chosen}
    order = dict(zip(table.column("graph_hash").to_pylist(), table.column("priority").to_pylist(), strict=True))
    assert sorted(order, key=lambda h: order[h]) == list(chosen)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_one_line(passnet: Passnet, lake: Path):
    refused(passnet("profile", "--warehouse", str(lake), "--device", "cuda"), "no CUDA device", "--device cpu")


def test_bad_options_and_empty_warehouses_are_one_line(passnet: Passnet, lake: Path, tmp_path: Path, stand_in):
    refused(passnet("profile", "--warehouse", str(lake), "--device", "tpu"), "tpu", "cpu, cuda")
    refused(passnet("profile", "--warehouse", str(lake), "--device", "cpu", "--mode", "fast"), "max-autotune")
    refused(passnet("profile", "--warehouse", str(tmp_path / "none"), "--device", "cpu"), "passnet refresh")
    empty = tmp_path / "empty"
    Warehouse.open(empty, create=True).publish(None, {"models": tiny.tables()["models"]})
    refused(passnet("profile", "--warehouse", str(empty), "--device", "cpu"), "holds no subgraphs")


def test_a_cluster_without_a_gpu_worker_is_one_line(monkeypatch: pytest.MonkeyPatch):
    class Client:
        def scheduler_info(self, n_workers: int = 5) -> dict[str, Any]:
            return {"workers": {"tcp://one": {"resources": {}}}}

    at = profile_tasks.Cluster(flow.Request(device="cuda", scheduler="tcp://there:8786"), Client())
    with pytest.raises(profile_tasks.UserError, match="--resources GPU=1"):
        at.device()


@pytest.mark.slow
def test_work_for_a_gpu_goes_to_the_workers_that_declare_one(lake: Path, tmp_path: Path, monkeypatch):
    """Two workers, one with the resource: whatever is submitted for cuda runs there."""
    from distributed import Client, LocalCluster, get_worker

    def batch(items: pa.Table, request: flow.Request) -> list[dict[str, Any]]:
        names = items.column("graph_hash").to_pylist()
        return [row(name, "NVIDIA H200", detail=str(get_worker().name)) for name in names]

    monkeypatch.setattr(profile_tasks, "identify", lambda device: str(get_worker().name))
    monkeypatch.setattr(profile_tasks, "profile_batch", batch)
    plain = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with plain as cluster, Client(cluster) as client:
        cluster.scale(1)
        from distributed import Worker

        async def add() -> Any:
            return await Worker(cluster.scheduler_address, nthreads=1, name="gpu", resources={"GPU": 1})

        worker = client.sync(add)
        client.wait_for_workers(2)
        at = profile_tasks.Cluster(flow.Request(device="cuda", scheduler="here"), client)
        assert at.device() == "gpu"
        results = Results(tmp_path / "out")
        items = pa.table({"graph_hash": ["a" * 32, "b" * 32], "priority": [0, 1]})
        monkeypatch.setattr(profile_tasks, "BATCH", 1)
        at.profile(items, results, lambda line: None)
        assert [(r["subgraph_hash"][0], r["detail"]) for r in results.rows()] == [("a", "gpu"), ("b", "gpu")]
        client.sync(worker.close)


@pytest.mark.slow
def test_a_real_run_on_a_cpu(passnet: Passnet, lake: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PREFECT_API_URL", shared_server())
    code, out, err = passnet("profile", "--warehouse", str(lake), "--device", "cpu", "--limit", "2", "--json")
    assert code == 0, err
    assert json.loads(out)["profiled"] == 2
    table = published(lake)
    assert {r["device"] for r in table} == {"cpu"}
    ok = [r for r in table if r["class"] == "ok"]
    assert ok and all(r["eager_host_us"] > 0 and r["compile_seconds"] > 0 for r in ok)
    gpu = {name for name, _, comment in PROFILES.columns if "GPU only" in comment}
    assert all(r[name] is None for r in table for name in gpu)
