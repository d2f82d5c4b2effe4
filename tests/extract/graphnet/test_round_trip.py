"""A graph that is exported in GraphNet's layout and imported again is the same graph."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from dedup.hashes import hashes
from extract.graphnet.job import record_of
from tests.extract.graphnet.written import MLP, MLP_META, write
from warehouse.graph.devices import on_device
from warehouse.graph.inputs import draw
from warehouse.graph.record import GraphRecord, RecordError
from warehouse.graph.to_fx import to_graph_module
from warehouse.graphnet.folder import write_graph
from warehouse.storage import LocalStorage


def again(record: GraphRecord, folder: Path) -> GraphRecord:
    write_graph(LocalStorage(folder), "sample", record, {"model_name": "tiny"})
    return record_of(os.fspath(folder / "sample"))


def test_an_imported_sample_survives_export_and_import(tmp_path: Path):
    record = record_of(os.fspath(write(tmp_path / "theirs", MLP, MLP_META)))
    returned = again(record, tmp_path)
    assert hashes(returned) == hashes(record)
    assert [n for _, n in returned.placeholders()] == [n for _, n in record.placeholders()]
