"""Ready questions about slowdowns and headroom, asked of figures written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from curate import ready
from tests.curate.passbench.world import GPU, Region, connection

SLOW = {"eager_host_us": 10.0, "inductor_host_us": 40.0, "eager_device_us": 10.0, "inductor_device_us": 20.0}
FAST = {"eager_host_us": 10.0, "inductor_host_us": 10.0, "eager_device_us": 10.0, "inductor_device_us": 5.0}
EVENTS = {"eager_events_us": 10.0, "inductor_events_us": 10.2, "bytes_read": 1000, "bytes_written": 24}


@pytest.fixture(scope="module")
def asked() -> Any:
    large = {"size:batch=4": {"bytes_read": 60_000, "bytes_written": 60_000}}
    return connection(
        [
            Region(("relu", "gelu"), ("a",), {**SLOW, **EVENTS, "headroom": 4.0}, large),
            Region(("silu", "gelu"), ("b",), {**FAST, **EVENTS, "headroom": 1.0, "scheduler_kernels": 2}, large),
            Region(("mish", "gelu"), ("c",), {"class": "timeout", **EVENTS}),
        ]
    )


def ask(connected: Any, name: str, **values: Any) -> list[dict[str, Any]]:
    answer = ready.load(name).run(connected, **values)
    columns = [column[0] for column in answer.description]
    return [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]


def test_slower_is_counted_by_clock_dtype_and_size(asked: Any):
    rows = {(r["dtype"], r["size"]): r for r in ask(asked, "slower_under_inductor")}
    assert set(rows) == {
        *(("all", size) for size in ("all", "1. below 64 KiB", "2. below 1 MiB")),
        *((dtype, "all") for dtype in ("float32", "float16", "bfloat16")),
    }
    whole = rows["all", "all"]
    assert (whole["device"], whole["subgraphs"]) == (GPU, 8)
    assert (whole["host_slower"], whole["events_slower"], whole["device_slower"]) == (0.5, 1.0, 0.5)
    assert (whole["host_speedup"], whole["device_speedup"]) == (0.5, 1.0)
    assert rows["float32", "all"]["subgraphs"] == 4 and rows["all", "2. below 1 MiB"]["subgraphs"] == 2
    assert ask(asked, "slower_under_inductor", margin=1.05)[0]["events_slower"] == 0.0


def test_headroom_is_told_by_how_many_kernels_there_are(asked: Any):
    rows = {r["kernels"]: r for r in ask(asked, "headroom")}
    assert {k: (r["subgraphs"], r["median"], r["from_1_3"], r["from_4"]) for k, r in rows.items()} == {
        "all": (8, 2.5, 0.5, 0.5),
        "one": (4, 4.0, 1.0, 1.0),
        "more": (4, 1.0, 0.0, 0.0),
    }


def test_sequences_that_are_slower_on_the_device(asked: Any):
    (row,) = ask(asked, "slowest_on_device")
    assert (row["sequence"], row["slower"], row["measured"], row["structures"]) == ("relu → gelu", 4, 4, 1)
    assert (row["ratio"], row["worst"]) == (2.0, 2.0)
    assert ask(asked, "slowest_on_device", least=5) == []
