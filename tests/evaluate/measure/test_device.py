"""Devices: one line for a missing one, one holder at a time, honest origins."""

from __future__ import annotations

import ctypes
import fcntl
import multiprocessing
import tempfile

import pytest
import torch

from evaluate.measure import nvml
from evaluate.measure.device import NoDevice, open_device


def test_a_cpu_says_cpu_and_has_no_gpu_columns():
    device = open_device("cpu")
    assert device.origin.device == "cpu"
    assert device.origin.driver is None and device.origin.cuda is None
    assert device.clocks() is None and not device.throttled()
    assert device.origin.torch == torch.__version__


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_one_clear_line():
    with pytest.raises(NoDevice, match="no CUDA device is visible: use --device cpu") as caught:
        open_device("cuda")
    assert "\n" not in str(caught.value)


def test_an_unknown_device_is_refused():
    with pytest.raises(NoDevice, match="tpu"):
        open_device("tpu")


def _hold(path: str, held: multiprocessing.synchronize.Event, done: multiprocessing.synchronize.Event) -> None:
    tempfile.tempdir = path
    with open_device("cpu").lock():
        held.set()
        done.wait(30)


def test_the_device_has_one_holder_and_a_killed_holder_leaves_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = multiprocessing.get_context("fork")
    held, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), held, done))
    holder.start()
    assert held.wait(30)
    (path,) = tmp_path.glob("passnet-*-cpu.lock")
    with open(path, "ab") as handle, pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holder.kill()
    holder.join()
    with open_device("cpu").lock():
        pass


def test_nvml_is_none_where_its_library_is_not(monkeypatch):
    def missing(name: str) -> ctypes.CDLL:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert nvml.Nvml.open(None) is None


@pytest.mark.parametrize(
    ("reasons", "held_back"),
    [(0x0, False), (0x1, False), (0x2, False), (0x10, False), (0x4, True), (0x20, True), (0x41, True)],
)
def test_idle_and_chosen_clocks_are_no_throttling(reasons, held_back):
    """Bits of nvml.h: 0x1 idle, 0x2 application clocks, 0x4 power cap, 0x10 sync boost, 0x20 and 0x40 thermal."""
    assert nvml.Clocks(1980, 3201, reasons, 40, 300.0).throttled is held_back
