"""The tables of a regenerated PassBench: `tasks`, what was chosen and why, and `task_members`, the subgraphs of each.

Rows are written by curate/passbench, which says how tasks are chosen (docs/passbench.md). A bench is named by the hash
of all that is judged, so benches of several snapshots and seeds stand beside each other.
"""

from __future__ import annotations

import pyarrow as pa

from warehouse.table import Table

_S, _I32, _I64, _B, _F = pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.float64()

TASKS = Table(
    "tasks",
    "Tasks of PassBench: a row each task of a bench, with what it was chosen by; docs/passbench.md.",
    (
        ("bench", _S, "version of PassBench: name and content hash"),
        ("split", _S, "eval or train; nothing of one is in the other: no template, operator sequence or model family"),
        ("task", _S, "id of the task; a submission's folder has this name"),
        ("stratum", _S, "why it is worth a pass: device, headroom or host, the first that holds for a member"),
        ("kind", _S, "kind of its subgraphs: fusible or typical"),
        ("device", _S, "device whose profiles chose it"),
        ("snapshot", _S, "id of the snapshot that it was chosen from"),
        ("seed", _I64, "seed of the choice"),
        ("structure_hash", _S, "structure that all its members share, but for dtypes and sizes"),
        ("template_hash", _S, "template of that structure"),
        ("op_hash", _S, "operator sequence of that structure"),
        ("ops", pa.list_(_S), "operators in reading order"),
        ("op_mix", _S, "families of its operators, sorted, joined by +"),
        ("family", _S, "model family that it stands for: of those that hold it, the one with the fewest candidates"),
        ("families", pa.list_(_S), "all model families that hold one of its members, sorted"),
        ("models", _I32, "model configurations that hold one of its members"),
        ("members", _I32, "subgraphs in the task, those held out included"),
        ("held_out", _I32, "members that an author is not shown"),
        ("dtypes", pa.list_(_S), "dtypes of its members, sorted"),
        ("templates", _I32, "graph templates in which its operator sequence occurs: its place on the frequency curve"),
        ("tail_share", _F, "share of the frequency curve that more frequent operator sequences make up"),
        ("rarity", _F, "mean of -log P(operator | operator before it) over the sequence, nats"),
        ("host_ratio", _F, "Inductor over eager by the host's clock, the worst member's"),
        ("device_ratio", _F, "Inductor over eager by the device's clock, the worst member's; GPU only"),
        ("headroom", _F, "Inductor's device time over the floor, the largest of a member; GPU only"),
    ),
    ("bench", "split", "task"),
)

TASK_MEMBERS = Table(
    "task_members",
    "Members of the tasks: a row each subgraph of a task of a bench.",
    (
        ("bench", _S, "version of PassBench: name and content hash"),
        ("split", _S, "eval or train"),
        ("task", _S, "the task"),
        ("subgraph_hash", _S, "the subgraph"),
        ("case", _S, "given: an author is shown it; held-out and its variant: an author is not"),
        ("variant", _S, "given: as captured; or a dtype or size that was derived from a given one"),
        ("dtype", _S, "floating-point dtype of its inputs"),
        ("elements", _I64, "elements of its largest tensor"),
        (
            "profiled",
            _B,
            "whether it has figures on the device and passed every gate; else it is known to run, no more",
        ),
        ("host_ratio", _F, "Inductor over eager by the host's clock; null when not profiled"),
        ("device_ratio", _F, "Inductor over eager by the device's clock; GPU only"),
        ("headroom", _F, "Inductor's device time over the floor; GPU only"),
        ("cause", _S, "where Inductor is slower than eager: host, device, both or none; null when not profiled"),
    ),
    ("bench", "split", "task", "subgraph_hash", "case"),
)
