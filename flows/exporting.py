"""`passnet export graphnet`: stored graphs as sample folders, or as one PassBench task."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.errors import UserError
from warehouse.graph.record import GraphRecord, RecordError
from warehouse.graphnet.folder import write_graph, write_task
from warehouse.graphnet.text import model_text
from warehouse.rows import records_from_table
from warehouse.storage import LocalStorage

_FACTS = Path(__file__).with_name("exported_graphs.sql")
_TAGS = {"vision": "computer_vision", "text": "nlp", "audio": "audio", "multimodal": "multimodal"}


@dataclass(frozen=True, slots=True)
class Exported:
    """`paths`: folder of each graph written, by graph_hash. `failed`: class by graph_hash. `task`: id of the task."""

    paths: dict[str, str]
    failed: dict[str, str]
    task: str | None

    def summary(self) -> dict[str, Any]:
        """The object that `export graphnet --json` ends with."""
        counted = dict(sorted(Counter(self.failed.values()).items()))
        return {
            "graphs": len(self.paths) + len(self.failed),
            "exported": len(self.paths),
            "failed": counted,
            "task": self.task,
            "paths": self.paths,
        }


def export_graphnet(connection: Any, hashes: list[str], folder: Path, task: bool) -> Exported:
    """Write the graphs named by full `hashes` under `folder`: each as `folder/<graph_hash>`, or all as one task.

    A graph that the layout cannot say is a classed entry of `failed`. Raises UserError when none can be written, and
    WarehouseError when a file cannot.
    """
    query = "SELECT * FROM nodes WHERE list_contains($hashes, graph_hash)"
    records = records_from_table(connection.sql(query, params={"hashes": hashes}).to_arrow_table())
    facts = _facts(connection, hashes)
    failed: dict[str, str] = {}
    reasons: list[str] = []
    chosen: dict[str, tuple[GraphRecord, dict[str, Any]]] = {}
    for graph_hash in hashes:
        try:
            model_text(records[graph_hash])
            chosen[graph_hash] = records[graph_hash], facts[graph_hash]
        except RecordError as error:
            failed[graph_hash] = error.kind
            reasons.append(f"{graph_hash[:12]}: {error}")
    if not chosen:
        raise UserError(f"nothing can be exported: {'; '.join(reasons[:3])}")
    if task:
        identity = write_task(folder, chosen)
        return Exported({h: f"graphs/{h}" for h in chosen}, failed, identity)
    for graph_hash, (record, about) in chosen.items():
        write_graph(LocalStorage(folder), graph_hash, record, about)
    return Exported({h: h for h in chosen}, failed, None)


def _facts(connection: Any, hashes: list[str]) -> dict[str, dict[str, Any]]:
    """What graph_net.json says of each graph: a model that holds it, and our names for it."""
    rows = connection.execute(_FACTS.read_text(encoding="utf-8"), {"hashes": hashes}).fetchall()
    return {
        graph_hash: {
            "model_name": name or "",
            "heuristic_tag": _TAGS.get(modality or "", "other"),
            "passnet_graph_hash": graph_hash,
            "passnet_hash_version": version,
        }
        for graph_hash, name, modality, version in rows
    }
