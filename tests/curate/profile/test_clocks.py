"""Where a slowdown comes from, and what a CPU has no figures for."""

from __future__ import annotations

import pytest
import torch

from curate.profile import clocks
from evaluate.measure.device import open_device
from warehouse.schema import PROFILES

GPU_ONLY = {name for name, _, comment in PROFILES.columns if "GPU only" in comment}


def row(host=None, device=None, events=None, **more):
    found = dict(more)
    for clock, ratio in (("host", host), ("device", device), ("events", events)):
        if ratio is not None:
            found |= {f"eager_{clock}_us": 10.0, f"inductor_{clock}_us": 10.0 * ratio}
    return found


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        (row(host=2.0, device=0.5), "host"),
        (row(host=0.5, device=2.0), "device"),
        (row(host=2.0, device=2.0), "both"),
        (row(host=0.5, device=0.5), "none"),
        (row(host=1.01, device=1.01), "none"),
        (row(host=2.0), "host"),
        (row(host=0.5), "none"),
        (row(host=0.5, events=2.0, not_capturable="it waits"), "device"),
        (row(host=0.5, events=2.0, device=0.5), "none"),
        (row(), None),
    ],
)
def test_the_cause_names_the_clock_by_which_inductor_is_slower(given, cause):
    assert clocks.cause(given) == cause


def test_on_a_cpu_only_the_hosts_clock_is_read():
    x = torch.randn(64)
    arms = {"eager": lambda: x.sin(), "inductor": lambda: x.sin().cos()}
    columns = clocks.clocked(arms, open_device("cpu"), None, None)
    assert columns["eager_host_us"] > 0 and columns["inductor_host_us"] > 0
    assert columns["host_samples"] == 60 and columns["dropped_samples"] == 0
    assert not GPU_ONLY & set(columns)


def test_gpu_only_columns_are_the_ones_of_the_device():
    assert {"eager_device_us", "inductor_kernels", "sm_mhz", "headroom", "eager_peak_bytes"} <= GPU_ONLY
    assert not {"eager_host_us", "compile_seconds", "bytes_read", "inductor_t"} & GPU_ONLY
