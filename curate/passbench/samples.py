"""The eval split as PassNet's sample folders, so that its harness runs our tasks.

    samples/<task>/graph_list.txt, sample_uids.txt, pass_dir/      the task
    samples/<task>/graphs/<subgraph>/model.py, weight_meta.py, input_meta.py, graph_net.json, ...

In go a choice and its records, out come folders and the members that the layout cannot say. All members are listed, the
held-out ones too: PassNet has no word for them; `case` in each graph_net.json tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from curate.passbench.choose import Choice
from warehouse.graph.record import GraphRecord, RecordError
from warehouse.graphnet.folder import write_task
from warehouse.graphnet.text import model_text

FOLDER = "samples"


def write_samples(
    folder: Path, choice: Choice, names: Mapping[str, str], records: Mapping[str, GraphRecord]
) -> dict[str, int]:
    """Write `folder`/samples; returns {"tasks", "subgraphs", "left_out"}. A task none of whose members can be said is
    left out whole. Raises WarehouseError when a file cannot be written."""
    members: dict[str, dict[str, tuple[GraphRecord, Mapping[str, object]]]] = {}
    left_out = 0
    for m in choice.members:
        if m["split"] != "eval":
            continue
        record = records[m["subgraph_hash"]]
        facts = {"model_name": names[m["structure_hash"]], "case": m["case"], "passnet_graph_hash": m["subgraph_hash"]}
        if _sayable(record):
            members.setdefault(m["structure_hash"], {})[m["subgraph_hash"]] = record, facts
        else:
            left_out += 1
    for structure, held in members.items():
        write_task(folder / FOLDER / names[structure], held)
    return {"tasks": len(members), "subgraphs": sum(map(len, members.values())), "left_out": left_out}


def _sayable(record: GraphRecord) -> bool:
    try:
        model_text(record)
    except RecordError:
        return False
    return True
