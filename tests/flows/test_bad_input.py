"""Bad input on the command line: every refusal is one line with the mend, exit code 2, and nothing is lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.catalog import Catalog
from flows.selection import select
from tests.flows import toy
from tests.flows.conftest import ROOT, Passnet, finish, refused, start
from tests.warehouse import tiny
from warehouse.storage import open_storage


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
        (["refresh", "--source", "toy", "--variant", "default+train"], ["unknown variant 'default'", "default alone"]),
        (["refresh", "--source", "toy", "--variant", "train+train"], ["both train and train"]),
        (["refresh", "--source", "toy", "--scheduler", ""], ["scheduler's address is empty", "leave --scheduler out"]),
        (["refresh", "--source", "toy", "--warehouse", "memory://x"], ["ends with the process", "give a folder"]),
        (["sql", "SELECT 1", "--warehouse", "no\x1b[31m\u202e"], ["no?[31m?"]),
        (["no\x1b[31m\n"], ["No such command"]),
        (["refresh", "--source", "toy", "--warehouse", "nosuch://x"], ["nosuch"]),
        (["refresh", "--source", "toy", "--warehouse", " "], ["the warehouse's address is empty"]),
        (["refresh", "--source", "toy", "--warehouse", "/proc/no"], ["cannot create the warehouse", "--warehouse"]),
        (["sql", "SELECT 1"], ["there is no warehouse", "passnet refresh"]),
        (["show", "ab"], ["there is no warehouse"]),
        (["snapshots"], ["there is no warehouse"]),
        (["diff", "1", "2"], ["there is no warehouse"]),
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
    refused(
        passnet("refresh", "--models", "names"), "cannot read --models names: it is not UTF-8 text; give a text file"
    )


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
    [
        "SELEC 1",
        "SELECT * FROM grafs",
        "DROP VIEW graphs; DELETE FROM graphs",
        " ",
        ";",
        "-- no",
        "\udcff",
        "COPY graphs TO 'x'",
    ],
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
