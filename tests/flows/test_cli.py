"""What the command line answers: every answer keeps its shape, every option is explained."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer

import flows.refresh
from flows import cli
from tests.flows.conftest import ROOT, Passnet, finish, refused, start
from tests.warehouse import tiny


def test_a_second_refresh_finds_nothing_to_do_and_starts_nothing(
    passnet: Passnet, lake: Path, uninterrupted: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(flows.refresh, "_run_flow", lambda *_: pytest.fail("it started a flow"))
    code, out, err = passnet("refresh", "--source", "toy", "--json")
    again, first = json.loads(out), uninterrupted[2]
    assert code == 0 and "0 to do" in err
    assert again["skipped"] == first["captured"] + sum(first["failed"].values())
    assert {k: again[k] for k in again if k not in ("seconds", "skipped")} == {
        k: first[k] for k in first if k not in ("seconds", "skipped")
    }


def test_the_object_that_refresh_ends_with(uninterrupted: Any):
    found = uninterrupted[2]
    assert set(found) == {
        *("models", "configurations", "captured", "failed", "skipped"),
        *("graphs", "unique_graphs", "seconds", "snapshot"),
    }
    assert found["models"] == 48 and found["configurations"] == 46, "three names have one configuration"
    assert found["failed"] == {"crash": 1, "exit": 1, "forward_error": 2}
    assert found["captured"] == 42 and found["graphs"] == 84 and found["skipped"] == 0


def test_a_refresh_closes_with_what_was_kept_three_answers_and_what_to_type_next(passnet: Passnet, lake: Path):
    code, out, _ = passnet("refresh", "--source", "toy")
    assert code == 0
    for part in ("Captured", "Failed, by class", "forward_error", "dropped", "Next:", "passnet show"):
        assert part in out
    assert out.count("curate/queries/") == 3


def test_every_name_of_one_configuration_is_kept_and_hostile_names_stay_text(passnet: Passnet, lake: Path):
    _, out, _ = passnet("sql", "SELECT name FROM models WHERE name LIKE 'same%' OR name LIKE 'host%'", "--json")
    assert {row["name"] for row in json.loads(out)} == {"same-0", "same-1", "same-2", f"hostile {tiny.HOSTILE}"}


def test_snapshots_are_listed_and_pruned(passnet: Passnet, lake: Path):
    assert finish(start(lake, models="good-1", variants="train"))[0] == 0
    listed = json.loads(passnet("snapshots", "--json")[1])
    assert [row["number"] for row in listed] == [1, 2] and listed[1]["parent"] == listed[0]["id"]
    changed = json.loads(passnet("diff", "1", "--json")[1])
    assert changed["captures"] == [
        {
            "change": "added",
            "source": "toy",
            "variant": "train-static-float32-cuda",
            "status": "complete",
            "captures": 1,
        }
    ]
    assert "train-static-float32-cuda" in passnet("diff", "1", "2")[1]
    assert "one and the same" in passnet("diff", "2")[1]
    refused(passnet("diff", "7"), "7")
    planned = json.loads(passnet("snapshots", "prune", "--keep", "1", "--json")[1])
    assert planned["snapshots"] == [1] and not planned["deleted"]
    assert len(json.loads(passnet("snapshots", "--json")[1])) == 2, "without --yes nothing is deleted"
    pruned = json.loads(passnet("snapshots", "prune", "--keep", "1", "--yes", "--json")[1])
    assert pruned == {**planned, "deleted": True}
    assert [row["number"] for row in json.loads(passnet("snapshots", "--json")[1])] == [2]
    refused(passnet("snapshots", "prune", "--keep", "0"), "cannot keep 0")


def test_show_prints_code_svg_and_json(passnet: Passnet, lake: Path, tmp_path: Path):
    (row,) = json.loads(passnet("sql", "SELECT graph_hash FROM graphs ORDER BY 1 LIMIT 1", "--json")[1])
    name = row["graph_hash"]
    assert "F.linear(" in passnet("show", name[:12])[1]
    assert passnet("show", name, "--svg")[1].startswith("<svg")
    graph = json.loads(passnet("show", name.upper(), "--json")[1])
    assert graph["graph_hash"] == name and len(graph["nodes"]) == graph["node_count"]
    assert passnet("show", name, "--svg", "--out", "graph.svg")[0] == 0
    assert (tmp_path / "graph.svg").read_text().startswith("<svg")
    refused(passnet("show", name, "--out", "no/such/folder"), "cannot write", "--out")


@pytest.mark.parametrize("place", ["lake", "no[/]where", "[red]"])
def test_doctor_answers_in_a_table_and_in_json_wherever_the_warehouse_is(passnet: Passnet, place: str):
    code, out, _ = passnet("doctor", "--warehouse", place, "--json")
    found = json.loads(out)
    assert code == (0 if found["ok"] else 2)
    assert {"python", "torch", "machine", "device", "disk", "warehouse"} <= {row["check"] for row in found["checks"]}
    code, out, _ = passnet("doctor", "--warehouse", place)
    assert place in "".join(out.split()) and "warehouse" in out


def test_the_version_is_that_of_the_package(passnet: Passnet):
    assert passnet("--version") == (0, f"passnet {metadata.version('passnet')}\n", "")


def test_sql_answers_as_csv_and_json(passnet: Passnet, lake: Path):
    assert passnet("sql", "SELECT 1 AS one", "--csv")[1].split() == ["one", "1"]
    assert json.loads(passnet("sql", "SELECT 1 AS one", "--json")[1]) == [{"one": 1}]


def test_the_warehouse_may_be_named_by_the_environment(
    passnet: Passnet, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lake.rename(tmp_path / "other")
    monkeypatch.setenv("PASSNET_WAREHOUSE", str(tmp_path / "other"))
    assert json.loads(passnet("sql", "SELECT count(*) AS n FROM models", "--json")[1]) == [{"n": 48}]


def test_a_summary_is_written_beside_the_data(lake: Path):
    (run,) = (lake / "runs").iterdir()
    summary = json.loads((run / "summary.json").read_text())
    assert summary["sources"]["toy"]["models"] == 48
    assert summary["changes"]["graphs"][0]["graphs"] == summary["tables"]["graphs"], "all new in the first snapshot"
    assert "forward_error" in (run / "summary.md").read_text()


def test_a_second_refresh_at_the_same_time_is_refused(passnet: Passnet, lake: Path):
    import fcntl

    with open(lake / ".refresh-lock", "a+") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        refused(passnet("refresh", "--source", "toy"), "another refresh", "process", "--warehouse")


# --------------------------------------------------------------- documentation


def options() -> list[tuple[str, str]]:
    """(command, option or argument) of everything that the command line takes."""
    found = []

    def walk(command: Any, path: str) -> None:
        for parameter in command.params:
            found.extend((path, name) for name in getattr(parameter, "opts", []) if name.startswith("--"))
        for name, inner in getattr(command, "commands", {}).items():
            found.append((path, name))
            walk(inner, f"{path} {name}".strip())

    walk(typer.main.get_command(cli.app), "")
    return found


def test_every_command_and_option_is_explained():
    text = (ROOT / "docs/cli.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")}
    every = options()
    assert ("refresh", "--scheduler") in every and ("snapshots prune", "--keep") in every
    for path, name in every:
        where = sections.get(f"passnet {path.split()[0]}", text) if path else text
        assert name in where or name == "--help", f"docs/cli.md does not explain {path} {name}"


def test_help_imports_nothing_heavy():
    heavy = ("torch", "prefect", "dask", "duckdb", "pyarrow")
    code = f"import sys, flows.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
