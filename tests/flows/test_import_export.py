"""`passnet import graphnet` and `passnet export graphnet`, as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.extract.graphnet.written import MLP, forward, meta, write
from tests.flows.conftest import HUNG, ROOT, Passnet, refused, shared_server


def imported(folder: Path, warehouse: Path) -> dict[str, Any]:
    """The object that an import in a process of its own ends with."""
    command = [sys.executable, "-m", "flows.cli", "import", "graphnet", str(folder), "--warehouse", str(warehouse)]
    done = subprocess.run(
        [*command, "--workers", "1", "--json"],
        cwd=ROOT,
        env={**os.environ, "PREFECT_API_URL": shared_server()},
        capture_output=True,
        text=True,
        timeout=HUNG,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five samples: two alike but for names and their place, one with another literal, a hostile one, a torn one."""
    root = tmp_path_factory.mktemp("published")
    write(root / "timm" / "mlp_a", source="timm", model_name="mlp_a", heuristic_tag="computer_vision")
    write(root / "timm" / "mlp_b", MLP.replace("scores", "points"), source="timm", model_name="mlp_b")
    write(root / "hub" / "mlp_c", MLP.replace("> -3", "> -4"))
    write(
        root / "hub" / "hostile", f"open({os.fspath(root / 'canary')!r}, 'w')\n" + forward("return (x,)"), meta("x", 2)
    )
    (write(root / "hub" / "torn") / "weight_meta.py").unlink()
    return root


@pytest.fixture(scope="module")
def first(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    warehouse = tmp_path_factory.mktemp("imported") / "lake"
    return warehouse, imported(folder, warehouse)


def test_an_import_counts_what_it_found_and_runs_nothing(first: tuple[Path, dict[str, Any]], folder: Path):
    found = dict(first[1])
    assert found.pop("seconds") > 0 and len(found.pop("snapshot")) == 32
    assert found == {
        "samples": 5,
        "imported": 3,
        "failed": {"sample_incomplete": 1, "syntax_unsupported": 1},
        "skipped": 0,
        "unique": {"graphs": 2, "structures": 2, "templates": 1},
    }
    assert not (folder / "canary").exists()


def test_samples_are_models_and_captures_with_where_they_came_from(first: Any, passnet: Passnet):
    asked = "SELECT m.name, m.modality, m.family, m.config, c.status, c.build FROM models m JOIN captures c USING "
    rows = json.loads(passnet("sql", asked + "(config_hash) ORDER BY 1", "--warehouse", str(first[0]), "--json")[1])
    assert [(r["name"], r["status"]) for r in rows] == [
        ("hub/hostile", "failed"),
        ("hub/mlp_c", "complete"),
        ("hub/torn", "failed"),
        ("timm/mlp_a", "complete"),
        ("timm/mlp_b", "complete"),
    ]
    told = json.loads(rows[3]["config"])
    assert (told["source"], told["model_name"], told["graph_hash"]) == ("timm", "mlp_a", "ab" * 32)
    assert (rows[3]["modality"], rows[3]["family"], rows[3]["build"]) == ("vision", "mlp", "imported")


def test_every_place_of_a_graph_is_kept_and_every_failure_names_its_line(first: Any, passnet: Passnet):
    asked = "SELECT count(*) AS n FROM occurrences GROUP BY graph_hash ORDER BY n"
    rows = json.loads(passnet("sql", asked, "--warehouse", str(first[0]), "--json")[1])
    assert [r["n"] for r in rows] == [1, 2]
    asked = 'SELECT name, "class", place FROM failures ORDER BY name'
    rows = json.loads(passnet("sql", asked, "--warehouse", str(first[0]), "--json")[1])
    assert rows == [
        {"name": "hub/hostile", "class": "syntax_unsupported", "place": "model.py:1"},
        {"name": "hub/torn", "class": "sample_incomplete", "place": "weight_meta.py"},
    ]


def test_a_second_import_does_only_what_is_new(first: Any, folder: Path, passnet: Passnet, tmp_path: Path):
    import shutil

    warehouse = tmp_path / "lake"
    shutil.copytree(first[0], warehouse)
    code, out, err = passnet("import", "graphnet", str(folder), "--warehouse", str(warehouse), "--json")
    again = json.loads(out)
    assert code == 0 and "0 to do" in err
    assert (again["skipped"], again["snapshot"], again["unique"]) == (5, first[1]["snapshot"], first[1]["unique"])
    more = tmp_path / "more"
    shutil.copytree(folder, more)
    write(more / "hub" / "new", MLP.replace("> -3", "> -5"))
    grown = imported(more, warehouse)
    assert (grown["skipped"], grown["imported"], grown["unique"]["graphs"]) == (5, 4, 3)


def test_an_exported_graph_is_imported_as_the_same_graph(first: Any, passnet: Passnet, tmp_path: Path):
    rows = json.loads(passnet("sql", "FROM graphs", "--warehouse", str(first[0]), "--json")[1])
    hashes = sorted(row["graph_hash"] for row in rows)
    words = ("export", "graphnet", *hashes, str(tmp_path / "out"), "--task", "--warehouse", str(first[0]), "--json")
    code, out, _ = passnet(*words)
    told = json.loads(out)
    assert code == 0 and (told["graphs"], told["exported"], told["failed"]) == (2, 2, {})
    assert (tmp_path / "out" / "graph_list.txt").read_text().split() == [told["paths"][h] for h in hashes]
    found = imported(tmp_path / "out", tmp_path / "second")
    assert (found["samples"], found["imported"]) == (2, 2)
    again = json.loads(passnet("sql", "FROM graphs", "--warehouse", str(tmp_path / "second"), "--json")[1])
    assert sorted(row["graph_hash"] for row in again) == hashes


def test_what_cannot_be_imported_or_exported_is_one_line(passnet: Passnet, tmp_path: Path, first: Any):
    refused(passnet("import", "graphnet", str(tmp_path / "none")), "is no folder")
    (tmp_path / "empty").mkdir()
    refused(passnet("import", "graphnet", str(tmp_path / "empty")), "no sample is under", "model.py")
    assert not (tmp_path / "lake").exists(), "a refused import leaves no warehouse"
    refused(passnet("export", "graphnet", "ffff", "out", "--warehouse", str(first[0])), "no graph begins with")
    rows = json.loads(passnet("sql", "FROM graphs LIMIT 1", "--warehouse", str(first[0]), "--json")[1])
    (tmp_path / "file").write_text("")
    words = ("export", "graphnet", rows[0]["graph_hash"], "file/out", "--warehouse", str(first[0]))
    refused(passnet(*words), "cannot export")


def test_a_snapshot_is_exported_for_others_to_read(first: Any, passnet: Passnet, tmp_path: Path):
    words = ("export", "hf", str(tmp_path / "out"), "--warehouse", str(first[0]))
    code, out, _ = passnet(*words, "--json")
    told = json.loads(out)
    assert code == 0 and (told["snapshot"], told["sequence"]) == (first[1]["snapshot"], 1)
    assert told["tables"]["graphs"] == {"rows": 2, "files": 1, "bytes": told["tables"]["graphs"]["bytes"]}
    assert told["figures"]["templates"] == first[1]["unique"]["templates"]
    assert sum(told["licenses"].values()) == 3
    code, out, _ = passnet(*words)
    assert code == 0 and "graphs" in out and "snapshot 1 " in out
    (tmp_path / "out" / "mine").write_text("")
    refused(passnet(*words), "holds 'mine', which is not of an export")
    refused(passnet(*words, "--snapshot", "9"), "no snapshot is called")
