"""Clocks, throttle reasons and driver of an NVIDIA GPU, read from NVML through ctypes; nothing is ever set.

In goes a GPU's UUID, out come readings, or None where the library is missing or refuses. NVML ships with the driver,
so no Python package is needed. Names and constants are those of nvml.h (NVML API reference, "Device Queries").
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

_SM, _MEMORY = 1, 2  # nvmlClockType_t
#: nvmlClocksThrottleReason* bits that mean the GPU ran slower than asked: power cap (software, hardware brake),
#: hardware slowdown, thermal (software, hardware). Idle, application clocks and sync boost are not among them.
THROTTLED = 0x04 | 0x08 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True, slots=True)
class Clocks:
    """One reading. `throttle` is NVML's bit mask of reasons; MHz, degrees Celsius, watts."""

    sm_mhz: int
    memory_mhz: int
    throttle: int
    temperature_c: int | None
    power_w: float | None

    @property
    def throttled(self) -> bool:
        return bool(self.throttle & THROTTLED)


class Nvml:
    """An open handle on one GPU."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p):
        self._library, self._handle = library, handle

    @classmethod
    def open(cls, uuid: str | None) -> Nvml | None:
        """The GPU with this UUID (`GPU-…`), or the first one for None; None when NVML is not there."""
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return None
        handle = ctypes.c_void_p()
        if library.nvmlInit_v2() != 0:
            return None
        if uuid is not None:
            text = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            failed = library.nvmlDeviceGetHandleByUUID(text.encode(), ctypes.byref(handle))
        else:
            failed = library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
        return None if failed else cls(library, handle)

    def driver(self) -> str | None:
        """Version of the driver, as `580.95.05`."""
        text = ctypes.create_string_buffer(96)
        failed = self._library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96))
        return None if failed else text.value.decode()

    def clocks(self) -> Clocks | None:
        """What the GPU runs at now; None when it does not tell its clocks or throttle reasons."""
        sm, memory = self._clock(_SM), self._clock(_MEMORY)
        reasons = self._reasons()
        if sm is None or memory is None or reasons is None:
            return None
        temperature, power = ctypes.c_uint(), ctypes.c_uint()
        hot = self._library.nvmlDeviceGetTemperature(self._handle, 0, ctypes.byref(temperature))
        drawn = self._library.nvmlDeviceGetPowerUsage(self._handle, ctypes.byref(power))
        return Clocks(sm, memory, reasons, None if hot else temperature.value, None if drawn else power.value / 1000)

    def throttled(self) -> bool:
        """Whether a throttle reason is active now: one call, cheap enough to stand around every block of samples."""
        return bool((self._reasons() or 0) & THROTTLED)

    def _clock(self, which: int) -> int | None:
        value = ctypes.c_uint()
        failed = self._library.nvmlDeviceGetClockInfo(self._handle, which, ctypes.byref(value))
        return None if failed else value.value

    def _reasons(self) -> int | None:
        value = ctypes.c_ulonglong()
        failed = self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle, ctypes.byref(value))
        return None if failed else value.value
