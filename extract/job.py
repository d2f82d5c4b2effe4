"""The job of a capture worker: one ModelRef and Variant in, one durable staged file out."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from extract import staged, verify
from extract.capture import capture
from extract.failures import classify
from extract.model import Capture, ModelRef, Variant
from extract.sources import registry
from warehouse.graph.record import RecordError
from warehouse.storage import WarehouseError


def run(given: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """Capture what `staged.payload` names, verify the sampled share, stage the result; returns its summary.

    When the warehouse cannot take the result that is no failure of the model: the answer is {"refused": why}.
    """
    ref, variant = ModelRef(**given["ref"]), Variant.parse(given["variant"])
    started, clock = datetime.now(UTC), time.perf_counter()
    source = registry.get(ref.source)
    found = capture(source, ref, variant, limits["node_budget"])
    if verify.sampled(found):
        found = _verified(source, found)
    try:
        summary = staged.stage(found, given["warehouse"], started, time.perf_counter() - clock)
    except WarehouseError as error:
        summary = {"refused": str(error)}
    del found
    gc.collect()  # a capture leaves cycles of many megabytes
    return summary


def _verified(source: registry.Source, found: Capture) -> Capture:
    """The capture after running its stored graphs against the module; a disagreement makes it a failure."""
    start = time.perf_counter()
    try:
        same = verify.outputs_equal(source, found)
        found = replace(found, verified="outputs") if same else found
    except RecordError as error:
        found = replace(found, failure=classify(error, "record"), graphs=())
    except Exception:
        # The module itself does not run here (it needs a device, or more memory): nothing was proven either way.
        pass
    found.seconds["record"] = found.seconds.get("record", 0.0) + time.perf_counter() - start
    return found
