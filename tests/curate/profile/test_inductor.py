"""A real Inductor compilation, on the CPU: what it fused, in rows of the record, and that nothing ran ahead of time."""

from __future__ import annotations

import pytest
import torch

from curate.profile.inductor import compile_ahead, names_to_rows
from curate.profile.items import Items
from curate.profile.worker import Settings, profile
from evaluate.measure.device import open_device
from tests.curate.profile.graphs import named, record, write
from warehouse.graph.to_fx import to_graph_module

F = torch.nn.functional


def chain(x, w):
    """Two fusible stretches around a matrix product."""
    before = F.gelu(x + 1)
    product = torch.matmul(before, w)
    return torch.relu(product) * 2


def test_names_lead_to_the_rows_that_they_were_made_from():
    graph = record(chain, torch.randn(4, 8), torch.randn(8, 8))
    rows = names_to_rows(to_graph_module(graph), graph)
    names = {name: graph.nodes[row].target.rpartition(".")[2] for name, row in rows.items()}
    assert sorted(names.values()) == ["add", "gelu", "matmul", "mul", "relu"]
    assert all(name.startswith(target) for name, target in names.items())


@pytest.mark.slow
def test_groups_say_where_to_split():
    graph = record(chain, torch.randn(4, 8), torch.randn(8, 8))
    module = to_graph_module(graph)
    ran = []
    module.register_forward_hook(lambda *_: ran.append(1))
    # NaN where values would be read: a compilation that looked at them could not give a right answer later.
    examples = [torch.full((4, 8), torch.nan), torch.full((8, 8), torch.nan)]
    compiled = compile_ahead(module, graph, examples, "default")
    by_target = {frozenset(graph.nodes[r].target.rpartition(".")[2] for r in g.rows): g.kind for g in compiled.groups}
    assert by_target == {
        frozenset({"add", "gelu"}): "kernel",
        frozenset({"matmul"}): "extern",
        frozenset({"relu", "mul"}): "kernel",
    }
    inputs = [torch.randn(4, 8), torch.randn(8, 8)]
    with torch.no_grad():
        assert torch.allclose(compiled.call(*inputs)[0], chain(*inputs), atol=1e-5)
    torch._dynamo.reset()


@pytest.mark.slow
def test_a_profile_of_a_fusible_chain_says_one_kernel_and_is_correct(tmp_path):
    graph = record(lambda x: torch.relu(x * 2) + 1, torch.randn(16, 16))
    items = Items.read(write(tmp_path / "items.parquet", {"chain": graph}))
    stages: list[str] = []
    row, broken = profile(named("chain"), items, open_device("cpu"), None, Settings("cpu"), stages.append)
    assert not broken and row["class"] == "ok"
    assert stages == ["record", "compile", "wait", "measure"]
    assert (row["scheduler_kernels"], row["extern_kernels"]) == (1, 0)
    assert row["inductor_t"] <= -5 and row["inductor_problem"] is None
    assert row["bytes_read"] == row["bytes_written"] == 1024
    assert row["compile_seconds"] > 0 and row["inductor_host_us"] > 0 and row["device"] == "cpu"
