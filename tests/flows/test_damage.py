"""Files of a warehouse that somebody changed: whoever reads them names what is wrong and goes no further."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.flows.conftest import Passnet, refused
from warehouse.snapshot import Warehouse


def published_anew(lake: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Nodes changed and published under right hashes: the work of a stranger who knows the format."""
    warehouse = Warehouse.open(lake)
    snapshot = warehouse.snapshot()
    warehouse.publish(snapshot, {"nodes": change(warehouse.read(snapshot, "nodes"))}, replace={"nodes"})


def first_graph(passnet: Passnet) -> str:
    (row,) = json.loads(passnet("sql", "SELECT min(graph_hash) AS h FROM graphs", "--json")[1])
    return str(row["h"])


def replaced(column: str, value: str) -> Callable[[pa.Table], pa.Table]:
    """Every call's `column` becomes `value`."""

    def change(table: pa.Table) -> pa.Table:
        calls = pc.equal(table.column("op"), "call_function")
        at = table.schema.get_field_index(column)
        new = pc.if_else(calls, pa.scalar(value, table.schema.field(at).type), table.column(at))
        return table.set_column(at, table.schema.field(at), new)

    return change


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("target", "torch.from_file"),
        ("target", "os.system"),
        ("target", "torch.nn.functional.linear\x1b[31m"),
        ("args", "not json"),
        ("args", '["%99999"]'),
        ("args", "[" * 2000),
        ("kwargs", '{"__class__": 1}'),
    ],
)
@pytest.mark.parametrize("form", [[], ["--svg"], ["--json"]])
def test_an_edited_record_is_never_shown_as_if_it_were_captured(
    passnet: Passnet, lake: Path, column: str, value: str, form: list[str]
):
    name = first_graph(passnet)
    published_anew(lake, replaced(column, value))
    refused(passnet("show", name, *form), name, "is damaged", "restore the warehouse")


def flipped(lake: Path) -> str:
    """Bytes inside the pages of nodes turned over; size and footer stay right. Returns the file's name."""
    (data,) = (lake / "data/nodes").glob("*.parquet")
    content = bytearray(data.read_bytes())
    for at in range(8, len(content) // 2):
        content[at] ^= 0xFF
    data.write_bytes(content)
    return data.name


@pytest.mark.parametrize("words", [["show", "{hash}"], ["sql", "SELECT * FROM nodes"], ["doctor", "--json"]])
def test_flipped_bytes_are_named_by_whoever_meets_them(passnet: Passnet, lake: Path, words: list[str]):
    name = first_graph(passnet)
    file = flipped(lake)
    code, out, err = passnet(*(word.format(hash=name) for word in words))
    assert code == 2 and file in "".join((out + err).split())
    if words[0] != "doctor":
        refused((code, out, err), file)


@pytest.mark.parametrize("how", ["truncated", "missing"])
def test_doctor_looks_into_the_files(passnet: Passnet, lake: Path, how: str):
    (data,) = (lake / "data/nodes").glob("*.parquet")
    os.truncate(data, data.stat().st_size - 9) if how == "truncated" else data.unlink()
    code, out, _ = passnet("doctor", "--json")
    found = {row["check"]: row for row in json.loads(out)["checks"]}
    assert code == 2 and found["warehouse"]["state"] == "missing" and data.name in found["warehouse"]["mend"]


def test_a_damaged_manifest_is_listed_with_its_problem_beside_the_good_ones(passnet: Passnet, lake: Path):
    shutil.copy(lake / "manifests/00000001.json", lake / "manifests/00000002.json")
    (lake / "manifests/00000002.json").write_text("{")
    code, out, _ = passnet("snapshots", "--json")
    good, bad = json.loads(out)
    assert code == 0 and good["problem"] is None and good["graphs"] and bad["graphs"] is None
    assert "00000002.json" in bad["problem"] and "00000002.json" in passnet("snapshots")[1]
    assert passnet("sql", "SELECT 1", "--snapshot", "1")[0] == 0, "the good one stays readable"
