"""What changed between two snapshots is said exactly, both ways round."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.warehouse import tiny
from warehouse import changes
from warehouse.schema import FAILURES, GRAPHS, MODELS
from warehouse.snapshot import Warehouse
from warehouse.storage import WarehouseError


def row(table, **values):
    empty = {name: None for name, _, _ in table.columns}
    return pa.Table.from_pylist([{**empty, **values}], table.schema)


@pytest.fixture
def grown(tmp_path: Path) -> tuple[Warehouse, Path]:
    """Snapshot 2 has one more model, failure and graph than snapshot 1; the graph's template is an old one."""
    warehouse, first = tiny.publish(tmp_path / "lake")
    known = warehouse.read(first, "graphs").to_pylist()[0]
    new = {
        "models": row(MODELS, source="timm", name="brand_new", family="fresh", revision="1"),
        "failures": row(FAILURES, capture_id="new", source="timm", **{"class": "timeout"}),
        "graphs": row(
            GRAPHS, graph_hash="new", structure_hash="new", template_hash=known["template_hash"], node_count=7
        ),
    }
    warehouse.publish(first, new)
    return warehouse, tmp_path / "lake"


def test_what_came_is_counted_by_its_kind(grown) -> None:
    found = changes.between(grown[1], 1)
    assert found["models"] == [{"change": "added", "source": "timm", "family": "fresh", "models": 1}]
    assert found["failures"] == [{"change": "added", "class": "timeout", "source": "timm", "captures": 1}]
    assert found["graphs"] == [{"change": "added", "graphs": 1, "structures": 1, "templates": 0, "nodes": 7}]
    assert found["captures"] == []
    assert found["rows"]["graphs"]["after"] == found["rows"]["graphs"]["before"] + 1


def test_the_other_way_round_it_went(grown) -> None:
    found = changes.between(grown[1], 2, 1)
    assert [r["change"] for kind in ("models", "failures", "graphs") for r in found[kind]] == ["removed"] * 3


def test_a_snapshot_equals_itself_and_everything_is_new_against_nothing(grown) -> None:
    warehouse, url = grown
    same = changes.between(url, 2, 2)
    assert not any(same[kind] for kind in ("models", "captures", "failures", "graphs"))
    first = warehouse.snapshot(1)
    whole = changes.compare(warehouse, None, first)
    assert sum(r["graphs"] for r in whole["graphs"]) == first.rows("graphs")
    assert whole["before"] == {"id": None, "number": None}


def test_an_unknown_snapshot_is_refused(grown) -> None:
    with pytest.raises(WarehouseError, match="9"):
        changes.between(grown[1], 9)
