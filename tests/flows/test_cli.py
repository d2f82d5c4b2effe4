"""The command line: a refusal is one line with the mend, an answer keeps its shape, every option is explained."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

import flows.refresh
from flows import cli
from flows.catalog import Catalog
from flows.selection import select
from tests.flows import toy
from tests.flows.conftest import ROOT, finish, start
from tests.warehouse import tiny
from warehouse.storage import open_storage

Passnet = Callable[..., tuple[int, str, str]]


@pytest.fixture
def passnet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Passnet:
    """Run `passnet` in this process, in an empty folder: exit code, stdout, stderr. Models are toys."""
    monkeypatch.chdir(tmp_path)
    toys = partial(flows.refresh.Request, job=toy.JOB, preload=())
    monkeypatch.setattr(flows.refresh, "Request", toys)
    monkeypatch.setattr(cli, "_leave", sys.exit)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["passnet", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def refused(answer: tuple[int, str, str], *says: str) -> None:
    code, out, err = answer
    assert (code, out) == (2, ""), answer
    assert err.startswith("passnet: ") and err.count("\n") == 1, f"not one line: {err!r}"
    for part in says:
        assert part in err


@pytest.fixture
def lake(tmp_path: Path, uninterrupted: Any) -> Path:
    """A warehouse of toys that a refresh filled."""
    shutil.copytree(uninterrupted[0], tmp_path / "lake")
    return tmp_path / "lake"


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bogus"], ["No such command", "passnet --help"]),
        (["refresh", "--sauce", "toy"], ["No such option", "passnet refresh --help"]),
        (["refresh", "--source", "toi"], ["unknown source 'toi'", "did you mean 'toy'?"]),
        (["refresh", "--source", "to\ny'; DROP"], ["unknown source"]),
        (["refresh", "--source", "toy", "--models", "good-777"], ["unknown model", "did you mean 'good-7'?"]),
        (["refresh", "--source", "toy", "--models", "toy:gud-7"], ["unknown model", "did you mean 'toy:good-7'?"]),
        (["refresh", "--source", "toy", "--models", "none*"], ["unknown model, file or pattern 'none*'"]),
        (["refresh", "--source", "toy", "--models", "../../etc/pass\0wd"], ["unknown model"]),
        (["refresh", "--source", "toy", "--limit", "0"], ["--limit 0 selects nothing"]),
        (["refresh", "--source", "toy", "--limit", "x"], ["--limit"]),
        (["refresh", "--source", "toy", "--seed", "1"], ["--seed", "--limit"]),
        (["refresh", "--source", "toy", "--variant", "fp32"], ["unknown variant 'fp32'", "float32"]),
        (["refresh", "--source", "toy", "--variant", "train+eval"], ["both train and eval"]),
        (["refresh", "--source", "toy", "--deadline", "0"], ["--deadline"]),
        (["refresh", "--source", "toy", "--deadline", "nan"], ["--deadline"]),
        (["refresh", "--source", "toy", "--deadline", "inf"], ["--deadline"]),
        (["refresh", "--source", "toy", "--workers", "-1"], ["--workers"]),
        (["refresh", "--source", "toy", "--workers", "99999999"], ["--workers"]),
        (["refresh", "--source", "toy", "--warehouse", "x" * 300], ["File name too long", "--warehouse"]),
        (["refresh", "--source", "toy", "--variant", ""], ["unknown variant ''"]),
        (["sql", "SELECT 1", "--warehouse", "no\x1b[31m\u202e"], ["no?[31m?"]),
        (["no\x1b[31m\n"], ["No such command"]),
        (["refresh", "--source", "toy", "--warehouse", "nosuch://x"], ["nosuch"]),
        (["refresh", "--source", "toy", "--warehouse", " "], ["the warehouse's address is empty"]),
        (["refresh", "--source", "toy", "--warehouse", "/proc/no"], ["cannot create the warehouse", "--warehouse"]),
        (["sql", "SELECT 1"], ["there is no warehouse", "passnet refresh"]),
        (["show", "ab"], ["there is no warehouse"]),
        (["snapshots"], ["there is no warehouse"]),
        (["snapshots", "prune"], ["--keep"]),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_mend(passnet: Passnet, words: list[str], says: list[str]):
    refused(passnet(*words), *says)


@pytest.mark.parametrize("models", ["toy:good-1", "timm:resnet18"])  # a source that is listed; one remembered
@pytest.mark.parametrize("place", ["file", "file/below", "file/below/it"])
def test_a_warehouse_at_or_below_a_file_is_refused(passnet: Passnet, tmp_path: Path, place: str, models: str):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "names").write_text(models)
    refused(passnet("refresh", "--models", "names", "--warehouse", place), "cannot create the warehouse", "--warehouse")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", ["refresh --source toi", "refresh --source toy --models nix", "sql x", "snapshots"])
def test_a_refusal_leaves_no_warehouse_behind(passnet: Passnet, tmp_path: Path, command: str):
    assert passnet(*command.split())[0] == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ["no model is selected"]),
        ("# nothing\n\n", ["no model is selected"]),
        ("toy:good-1\ngood-2\n", ["line 2", "source:name"]),
        ("toy:good-1\n\ntoi:good-2\n", ["line 3", "did you mean 'toy'?"]),
        ("toy:goood-1\n", ["line 1", "did you mean 'good-1'?"]),
        ("toy:'; DROP TABLE models;--\n", ["line 1", "unknown toy model"]),
        ("toy:\x1b[31m\u202ered\n", ["line 1", "unknown toy model '?[31m?red'"]),
    ],
)
def test_a_bad_line_in_a_file_of_models_is_named(passnet: Passnet, tmp_path: Path, text: str, says: list[str]):
    (tmp_path / "names").write_text(text)
    refused(passnet("refresh", "--models", "names"), *says)


def chosen(models: str, limit: int | None = None, seed: int | None = None) -> list[str]:
    return [ref.name for ref in select(Catalog(open_storage("lake")), ["toy"], models, limit, seed)]


def test_a_line_given_twice_counts_once_and_a_byte_order_mark_does_not_matter(tmp_path: Path):
    (tmp_path / "names").write_text("\ufefftoy:good-1\ntoy:good-1\ntoy:good-2 # two\ntoy:good-3\n", encoding="utf-8")
    assert chosen(str(tmp_path / "names"), limit=2) == ["good-1", "good-2"]
    assert len(set(chosen(str(tmp_path / "names"), limit=3, seed=0))) == 3


def test_a_name_full_of_signs_selects_itself():
    name = f"hostile {tiny.HOSTILE}"
    assert chosen(name) == [name] == chosen(f"toy:{name}")


def test_a_file_of_models_that_is_no_text_is_refused(passnet: Passnet, tmp_path: Path):
    (tmp_path / "names").write_bytes(b"\xff\xfe\x00")
    refused(passnet("refresh", "--models", "names"), "cannot read --models names")


def spoil(lake: Path, how: str) -> str:
    """Damage a warehouse in one way; returns what the message must name."""
    data = next((lake / "data/nodes").glob("*.parquet"))
    manifest = lake / "manifests/00000001.json"
    if how == "truncated":
        data.write_bytes(data.read_bytes()[:-9])
    elif how == "foreign":
        size = data.stat().st_size
        pq.write_table(pa.table({"x": [1]}), data)
        data.write_bytes(data.read_bytes().ljust(size, b"\0"))
    elif how == "missing":
        data.unlink()
    elif how == "newer":
        manifest.write_text(re.sub(r'"(format|schema)(_version)?":\s*1\b', r'"\1\2": 99', manifest.read_text()))
        return manifest.name
    elif how == "no manifest":
        manifest.write_text("{")
        return manifest.name
    return data.name


@pytest.mark.parametrize("how", ["truncated", "foreign", "missing", "newer", "no manifest"])
@pytest.mark.parametrize("words", ["sql SELECT", "show 0", "refresh --source toy"])
def test_a_damaged_warehouse_is_refused_by_every_command(passnet: Passnet, lake: Path, how: str, words: str):
    name = spoil(lake, how)
    before = {p: p.stat().st_mtime_ns for p in (lake / "data").rglob("*") if p.is_file()}
    code, out, err = passnet(*words.split())
    refused((code, out, err.splitlines()[-1] + "\n"), name)
    after = {p: p.stat().st_mtime_ns for p in (lake / "data").rglob("*") if p.is_file()}
    assert after == before, "nothing is lost and nothing added"


def test_a_refresh_builds_nothing_on_a_damaged_snapshot(lake: Path):
    name = spoil(lake, "truncated")
    code, out, err = finish(start(lake, models="good-1", variants="train"))
    assert (code, out) == (2, "")
    refused((code, out, err.splitlines()[-1] + "\n"), name)
    assert [p.name for p in (lake / "manifests").iterdir()] == ["00000001.json"]


def test_a_full_warehouse_stops_the_run_and_fails_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(toy.FULL, "free some space")
    code, out, err = finish(start(tmp_path / "lake", models="good-1"))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "passnet: the disk is full: free some space"
    monkeypatch.delenv(toy.FULL)
    code, out, _ = finish(start(tmp_path / "lake", models="good-1"))
    assert code == 0 and json.loads(out)["captured"] == 1


@pytest.mark.parametrize("text", ["zz", "", "'; DROP TABLE graphs;--", "../../etc/passwd", "0" * 32, "\n"])
def test_a_hash_that_names_no_graph_is_refused(passnet: Passnet, lake: Path, text: str):
    refused(passnet("show", text))


def test_a_beginning_that_several_graphs_share_is_refused_with_their_hashes(passnet: Passnet, lake: Path):
    rows = json.loads(passnet("sql", "SELECT graph_hash FROM graphs ORDER BY 1", "--json")[1])
    names = [row["graph_hash"] for row in rows]
    digit, shared = next((d, some) for d in "0123456789abcdef" if len(some := [n for n in names if n[0] == d]) > 1)
    refused(passnet("show", digit), "several graphs begin with", shared[0][:16], "give more digits")


@pytest.mark.parametrize(
    "query",
    ["SELEC 1", "SELECT * FROM grafs", "DROP VIEW graphs; DELETE FROM graphs", " ", "COPY graphs TO 'x'"],
)
def test_a_query_that_is_wrong_is_one_line(passnet: Passnet, lake: Path, query: str):
    refused(passnet("sql", query))


@pytest.mark.parametrize("scheduler", ["tcp://127.0.0.1:1", "nonsense://", "nonsense"])
def test_a_scheduler_that_does_not_answer_is_refused(passnet: Passnet, scheduler: str):
    code, out, err = passnet("refresh", "--source", "toy", "--scheduler", scheduler)
    refused((code, out, err.splitlines()[-1] + "\n"), "no Dask scheduler", scheduler, "dask worker")


def test_a_prefect_server_that_does_not_answer_is_refused(passnet: Passnet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    code, out, err = passnet("refresh", "--source", "toy")
    refused((code, out, err.splitlines()[-1] + "\n"), "http://127.0.0.1:1/api", "prefect server start", "unset")


@pytest.mark.parametrize("query", ["SELECT 1", "FROM range(9999)"])
def test_output_that_a_full_disk_cuts_short_is_no_success(lake: Path, query: str):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "flows.cli", "sql", query, "--warehouse", str(lake), "--json"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    refused((done.returncode, "", done.stderr), "cannot use the output: No space left")


def test_a_stray_file_among_staged_captures_is_left_alone(passnet: Passnet, lake: Path):
    (lake / "staging").mkdir(exist_ok=True)
    (lake / "staging/.DS_Store").write_text("x")
    assert passnet("refresh", "--source", "toy")[0] == 0


def test_two_formats_at_once_are_refused(passnet: Passnet, lake: Path):
    refused(passnet("sql", "SELECT 1", "--json", "--csv"), "exclude each other")
    refused(passnet("show", "0", "--json", "--svg"), "exclude each other")


# -------------------------------------------------------------- what it answers


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
