"""A graph's folder and a PassBench task's folder, written file by file, the marker of completeness last."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warehouse.graph.record import GraphRecord
from warehouse.graphnet import layout
from warehouse.graphnet.metas import constraints_text, meta_text
from warehouse.graphnet.text import model_text
from warehouse.storage import LocalStorage, Storage, durable

_ACT = "export"


def write_graph(
    storage: Storage,
    folder: str,
    record: GraphRecord,
    facts: Mapping[str, Any],
    sources: Mapping[str, Any] | None = None,
) -> str:
    """Write `record` as the sample `folder` of `storage`; returns the SHA-256 that its graph_hash.txt holds.

    `facts` join graph_net.json (model_name, source, our graph_hash). `sources` of a subgraph: parent sample ->
    [[start, end], ...]. Raises RecordError for a graph that the layout cannot say, WarehouseError when a file cannot
    be written; a folder without graph_net.json is not finished.
    """
    printed = model_text(record)
    theirs = hashlib.sha256(printed.text.encode()).hexdigest()
    files = {
        layout.MODEL: printed.text,
        layout.WEIGHTS: meta_text(record, printed.arguments),
        layout.INPUTS: "",
        layout.CONSTRAINTS: constraints_text(record, printed.arguments),
        layout.HASH: theirs,
    }
    if sources is not None:
        files[layout.SUBGRAPH] = json.dumps(sources, indent=4)
    stated = {
        "framework": "torch",
        "num_devices_required": 1,
        "num_nodes_required": 1,
        "dynamic": False,
        "source": "passnet",
        "dimension_generalization_passes": [],
        "data_type_generalization_passes": [],
        **facts,
    }
    files[layout.FACTS] = json.dumps(stated, indent=4)
    for name, text in files.items():
        with durable(storage, f"{folder}/{name}", _ACT) as sink:
            sink.write(text.encode())
    return theirs


def write_task(folder: Path, graphs: Mapping[str, tuple[GraphRecord, Mapping[str, Any]]]) -> str:
    """Write a task of several graphs, by uid, as a folder of its own; returns the task's id.

    The id is the one PassBench gives: SHA-256 of the sorted uids. Graphs lie in the task's own folder `graphs`, where
    PassBench has a link to those of all tasks; `pass_dir` is empty, for a submission.
    """
    storage = LocalStorage(folder)
    paths = {uid: f"{layout.TASK_GRAPHS}/{safe_name(uid)}" for uid in graphs}
    for uid, (record, facts) in graphs.items():
        write_graph(storage, paths[uid], record, facts)
    (folder / layout.TASK_PASSES).mkdir(parents=True, exist_ok=True)
    uids = list(graphs)
    for name, text in (
        (layout.TASK_UIDS, ",".join(uids)),
        (layout.TASK_LIST, "".join(f"{paths[uid]}\n" for uid in uids)),
    ):
        with durable(storage, f"./{name}", _ACT) as sink:
            sink.write(text.encode())
    return hashlib.sha256("\n".join(sorted(uids)).encode()).hexdigest()


def safe_name(text: str) -> str:
    """`text` as one component of a path: no separators, no dots alone, at most 120 characters."""
    name = re.sub(r"[^0-9A-Za-z_.+-]+", "_", text)[:120]
    return name if name.strip(".") else f"_{name}"
