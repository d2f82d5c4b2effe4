"""The device that measurements are made on: what it is, how to wait for it, how to empty its cache, who holds it.

In goes `cpu` or `cuda`, out comes a `Device`. On a CPU there is nothing to wait for and no cache is flushed; its
`origin` says `cpu`, and whoever measures leaves the device clocks empty.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import torch

from evaluate.measure.nvml import Clocks, Nvml

#: Times the size of L2 that one flush writes, so that no line of an earlier call survives.
FLUSH_FACTOR = 2


class NoDevice(Exception):
    """The device asked for is not there. The text is one line."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where figures come from. Figures of different origins are never mixed.

    device: `cpu`, or the GPU's name; driver and cuda: None on a CPU; host: processor model; cores: usable ones.
    """

    device: str
    driver: str | None
    cuda: str | None
    torch: str
    triton: str | None
    python: str
    host: str
    cores: int


class Device:
    """One CPU or the process's current CUDA device. Use `open_device`."""

    def __init__(self, kind: str, origin: Origin, nvml: Nvml | None, flush_bytes: int, uuid: str | None):
        self.kind, self.origin, self._nvml, self._uuid = kind, origin, nvml, uuid
        self._flushed = torch.empty(flush_bytes // 4, dtype=torch.int32, device=kind) if flush_bytes else None

    @property
    def is_cuda(self) -> bool:
        return self.kind == "cuda"

    def synchronize(self) -> None:
        """Wait for everything on the device, every stream."""
        if self.is_cuda:
            torch.cuda.synchronize()

    def flush(self) -> None:
        """Overwrite the L2 cache, asynchronously on the current stream (the way of Triton's do_bench and nvbench)."""
        if self._flushed is not None:
            self._flushed.zero_()

    def clocks(self) -> Clocks | None:
        return self._nvml.clocks() if self._nvml is not None else None

    def throttled(self) -> bool:
        """Whether the device says that it is held back now."""
        return self._nvml is not None and self._nvml.throttled()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only one who measures on this device, among all processes of this machine.

        A file lock: the kernel drops it with its process, so a killed holder leaves nothing behind.
        """
        path = Path(tempfile.gettempdir()) / f"passnet-{os.getuid()}-{self._uuid or self.kind}.lock"
        with open(path, "ab") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def open_device(kind: str) -> Device:
    """The device called `cpu` or `cuda`. Raises NoDevice when there is no such one, or it does not answer."""
    if kind == "cpu":
        return Device("cpu", _origin("cpu", None, None), None, 0, None)
    if kind != "cuda":
        raise NoDevice(f"no device is called {kind!r}: cpu or cuda")
    if not torch.backends.cuda.is_built():
        raise NoDevice("this torch was built without CUDA: use --device cpu, or install a CUDA build")
    try:
        if torch.cuda.device_count() == 0:
            raise NoDevice("no CUDA device is visible: use --device cpu, or run on a machine with a GPU")
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    except RuntimeError as error:
        raise NoDevice(f"the CUDA device does not answer: {str(error).splitlines()[0]}") from error
    uuid = str(properties.uuid) if hasattr(properties, "uuid") else None
    nvml = Nvml.open(uuid)
    origin = _origin(properties.name, nvml.driver() if nvml else None, torch.version.cuda)
    return Device("cuda", origin, nvml, FLUSH_FACTOR * properties.L2_cache_size, uuid)


def _origin(device: str, driver: str | None, cuda: str | None) -> Origin:
    try:
        triton: str | None = metadata.version("triton")
    except metadata.PackageNotFoundError:
        triton = None
    cores = len(os.sched_getaffinity(0))
    return Origin(device, driver, cuda, torch.__version__, triton, platform.python_version(), _processor(), cores)


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> int:
    """`python -m evaluate.measure.device cpu|cuda`: the origin as JSON on stdout, or one line on stderr and 2."""
    try:
        print(json.dumps(asdict(open_device(sys.argv[1] if len(sys.argv) > 1 else "cuda").origin)))
    except NoDevice as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
