"""The job of an import worker: one sample folder in, one durable staged file out, as a capture leaves one.

Runs in the same isolated pool as captures: no network, a deadline, a memory cap; a bad sample costs itself alone.
"""

from __future__ import annotations

import gc
import json
import math
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dedup.hashes import hashes
from extract import staged
from extract.failures import classify
from extract.graphnet import metas, program, samples
from extract.graphnet.complete import RunError, complete
from extract.graphnet.problem import SampleError
from extract.model import Capture, CapturedGraph, Failure, ModelRef, Variant
from warehouse.graph.record import GraphRecord
from warehouse.graphnet.layout import FACTS, INPUTS, MODEL, WEIGHTS
from warehouse.storage import WarehouseError

BUILD = "imported"


def payload(sample: samples.Sample, ref: ModelRef, variant: Variant, warehouse: str) -> dict[str, Any]:
    """What a worker needs to know of a sample, as JSON-ready data."""
    return {**staged.payload(ref, variant, warehouse), "folder": sample.folder, "problem": sample.problem}


def run(given: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """Import what `payload` names and stage the result; returns its summary, as `extract.job.run` does."""
    ref, variant = ModelRef(**given["ref"]), Variant.parse(given["variant"])
    started, clock = datetime.now(UTC), time.perf_counter()
    collecting = gc.isenabled()
    gc.disable()  # a sample is millions of small objects that stay; the worker collects them after the job
    try:
        found = _import(ref, variant, given["folder"], given.get("problem"), limits["node_budget"])
        summary = staged.stage(found, given["warehouse"], started, time.perf_counter() - clock)
    except WarehouseError as error:
        summary = {"refused": str(error)}
    finally:
        if collecting:
            gc.enable()
    return summary


def record_of(folder: str) -> GraphRecord:
    """The record of the sample in `folder`. Raises SampleError, RecordError or RunError."""
    parsed = program.parse(samples.read(folder, MODEL))
    described = metas.parse(samples.read(folder, WEIGHTS), WEIGHTS)
    try:
        inputs = samples.read(folder, INPUTS)
    except SampleError as error:
        if error.kind != "sample_incomplete":
            raise
        inputs = ""
    described = {**metas.parse(inputs, INPUTS), **described}
    return complete(parsed, described)


def _import(ref: ModelRef, variant: Variant, folder: str, problem: str | None, budget: int) -> Capture:
    clock = time.perf_counter()
    graphs: tuple[CapturedGraph, ...] = ()
    failure, parameters = None, 0
    try:
        if problem is not None:
            raise SampleError("sample_refused", problem)
        _facts_are_json(folder)
        record = record_of(folder)
        if record.num_nodes() > budget:
            raise SampleError("node_budget", f"more than {budget} nodes")
        h = hashes(record)
        graphs = (CapturedGraph(0, record, h.graph_hash, h.structure_hash, h.template_hash, h.op_hash),)
        parameters = sum(math.prod(n.shape or ()) for _, n in record.placeholders() if n.role == "parameter")
    except Exception as error:  # whatever a sample holds becomes a classed row
        failure = _failure(error)
    seconds = {"record": time.perf_counter() - clock}
    return Capture(ref, variant, BUILD, graphs, (), failure, parameters, seconds, peak_mb=0.0)


def _facts_are_json(folder: str) -> None:
    try:
        json.loads(samples.read(folder, FACTS))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SampleError):
            raise
        raise SampleError("meta_invalid", f"{FACTS} is not JSON", FACTS) from error


def _failure(error: Exception) -> Failure:
    if isinstance(error, SampleError):
        return Failure(error.kind, "record", "SampleError", str(error), error.place)
    if isinstance(error, RunError):
        return replace(classify(error.__cause__ or error, "trace"), place=error.place)  # type: ignore[arg-type]
    return classify(error, "record")
