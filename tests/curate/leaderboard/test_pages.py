"""The leaderboard: comparable rows only, names that stay text, a page that works in a browser without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curate.leaderboard.boards import boards
from curate.leaderboard.page import NotOurs, Report, write
from tests.curate.leaderboard.browser import opened
from tests.curate.leaderboard.making import HOSTILE, OTHER, everything, published, run
from tests.evaluate.rows import CPU, GPU
from warehouse.sql import connect


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaderboard")
    published(folder / "lake", everything())
    return folder


@pytest.fixture(scope="module")
def made(place: Path) -> Report:
    from warehouse.snapshot import Warehouse

    report = write(connect(place / "lake"), Warehouse.open(place / "lake").snapshot(), place / "out")
    assert report is not None
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with opened() as running:
        yield running


@pytest.fixture
def page(browser: Any, made: Report) -> Iterator[Any]:
    """The index in a window of its own; whatever it asks for besides files of the report fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    shown = context.new_page()
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("pageerror", lambda error: pytest.fail(str(error)))
    shown.goto(made.index.as_uri())
    yield shown
    folder = made.index.parent.as_uri()
    assert all(url.startswith(folder) for url in asked), asked
    context.close()


# ---------------------------------------------------------------- what stands together


def test_a_board_holds_one_device_clock_bench_and_set_of_cases(place: Path):
    found = boards(connect(place / "lake"))
    keys = [(b.device, b.clock, b.bench, b.cases) for b in found]
    assert len(set(keys)) == len(keys) == 7
    for board in found:
        for entry in board.entries:
            held = {(c["device"], c["bench"]) for c in entry.cases}
            assert held == {(board.device, board.bench)}
    assert [b.device for b in found][-1] == CPU, "GPUs first"
    assert {b.bench for b in found if b.device == GPU} >= {OTHER}


def test_the_newest_run_counts_and_old_ones_do_not(place: Path):
    first = boards(connect(place / "lake"))[0]
    mine = [e for e in first.entries if e.row["submission_name"] == "mine"]
    assert [e.row["run"] for e in mine] == ["run of mine"]
    assert mine[0].row["place"] == 1 and len(mine[0].cases) == 12


def test_the_figures_are_those_of_the_scores(place: Path):
    connection = connect(place / "lake")
    for board in boards(connection):
        for entry in board.entries:
            row = connection.execute(
                "SELECT aggregate, aggregate_low, correct, curve FROM scores WHERE run = ? AND submission = ? "
                "AND level = 'whole' AND pool = 'tasks' AND clock = ?",
                [entry.row["run"], entry.row["submission"], board.clock],
            ).fetchone()
            assert row is not None
            assert row[:3] == tuple(entry.row[k] for k in ("aggregate", "aggregate_low", "correct"))
            assert entry.row["curve"] == json.loads(row[3])
            shown = connection.execute(
                "SELECT t, es FROM es_curve(?, ?, 'tasks') WHERE submission = ?",
                [entry.row["run"], board.clock, entry.row["submission"]],
            ).fetchall()
            assert shown == [(p["t"], p["ES"]) for p in json.loads(row[3])]


def test_verdicts_are_counted_by_run_task_and_exploit(place: Path):
    answer = connect(place / "lake").execute(
        "SELECT verdict, exploit, sum(cases) FROM verdict_counts WHERE submission_name = ? GROUP BY ALL ORDER BY ALL",
        [HOSTILE],
    )
    found = {(verdict, exploit): int(count) for verdict, exploit, count in answer.fetchall()}
    assert found["clean", None] == 3 and found["hack", "cached-by-pointer"] == 1 and len(found) == 10


def test_speedups_are_of_correct_cases_and_failures_count_below(place: Path):
    board = boards(connect(place / "lake"))[0]
    by_name = {e.row["submission_name"]: e for e in board.entries}
    assert len(by_name["mine"].speedups) == 11 and by_name["mine"].counted == 12
    assert by_name["all wrong"].speedups == () and by_name["all wrong"].counted == 12
    assert by_name[HOSTILE].counted == 10, "task_defect and harness_error count nowhere"


# ---------------------------------------------------------------- the files


def test_every_file_is_listed_and_curves_lie_beside_the_page(made: Report, place: Path):
    listed = json.loads((place / "out" / "report.json").read_text())
    there = {str(p.relative_to(place / "out")) for p in (place / "out").rglob("*") if p.is_file()}
    assert there == {*listed["files"], "report.json"}
    charts = [name for name in there if name.startswith("charts/")]
    assert sum(n.endswith(".svg") for n in charts) == sum(n.endswith(".png") for n in charts) == 7 + 6
    for name in charts:
        head = (place / "out" / name).read_bytes()[:400]
        assert head.startswith(b"\x89PNG") or b"<svg" in head or b"<?xml" in head


def test_the_same_snapshot_gives_the_same_bytes(place: Path, made: Report, tmp_path: Path):
    from warehouse.snapshot import Warehouse

    again = write(connect(place / "lake"), Warehouse.open(place / "lake").snapshot(), tmp_path / "out")
    assert again is not None
    for first, second in zip(made.files, again.files, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_a_second_report_takes_away_what_the_first_made_and_nothing_else(tmp_path: Path):
    _, snapshot = published(tmp_path / "many", [run("mine", tasks=3)])
    write(connect(tmp_path / "many"), snapshot, tmp_path / "out")
    (tmp_path / "out" / "tasks" / "notes.txt").write_text("mine")
    _, snapshot = published(tmp_path / "few", [run("mine", tasks=1)])
    report = write(connect(tmp_path / "few"), snapshot, tmp_path / "out")
    assert report is not None
    there = {p.name for p in (tmp_path / "out" / "tasks").iterdir()}
    assert there == {"notes.txt", *(p.name for p in report.files if p.parent.name == "tasks")}


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path):
    _, snapshot = published(tmp_path / "lake", [run("mine", tasks=1)])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years")
    with pytest.raises(NotOurs, match="no leaderboard"):
        write(connect(tmp_path / "lake"), snapshot, tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_hostile_names_are_text_in_every_file(made: Report):
    for path in made.files:
        if path.suffix in (".html", ".svg"):
            text = path.read_text()
            assert "<script>document" not in text and "<img" not in text, path
            assert not re.search(r'(?:src|href)="(?:https?:)?//', text), f"{path} names something remote"


def test_a_hostile_task_name_makes_no_file_elsewhere(tmp_path: Path):
    rows = [{**row, "task": "../../evil/" + row["task"]} for row in run("mine", tasks=1)]
    _, snapshot = published(tmp_path / "lake", [rows])
    report = write(connect(tmp_path / "lake"), snapshot, tmp_path / "out")
    assert report is not None and all((tmp_path / "out") in p.resolve().parents for p in report.files)
    assert not list(tmp_path.glob("**/evil*/*"))


# ---------------------------------------------------------------- in a browser


def test_names_do_not_run_and_the_page_asks_for_nothing(page: Any):
    assert page.title() == "PassNet leaderboard"
    assert page.locator("table.board tbody th bdi", has_text="</td></tr><script>").count() == 2
    assert page.locator("img").count() == 0


def test_a_click_on_a_header_sorts_best_first_and_again_worst_first(page: Any):
    table = page.locator("table.board").first
    names = table.locator("tbody th bdi")
    table.locator("thead button", has_text="G-mean").click()
    assert table.locator("thead th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert names.first.inner_text().startswith("</td>")
    assert names.last.inner_text() == "all wrong", "no value stays last"
    table.locator("thead button", has_text="G-mean").click()
    assert names.first.inner_text() == "baseline:eager" and names.last.inner_text() == "all wrong"
    table.locator("thead button", has_text="Submission").click()
    assert names.all_inner_texts()[1:] == ["all wrong", "baseline:eager", "baseline:inductor", "mine"]


def test_no_table_mixes_devices_and_the_published_rows_stand_apart(page: Any):
    sections = page.locator("main section")
    for i in range(sections.count()):
        section = sections.nth(i)
        text = section.inner_text()
        if section.get_attribute("id") == "published":
            assert "not ranked" in text and "A30" in text and section.locator("table.board").count() == 0
            assert section.locator("tbody tr").count() == 11
        elif section.get_attribute("data-device") == CPU:
            assert "no claim about time" in text and "G-mean" not in text and section.locator("svg").count() == 1
        else:
            assert GPU in text and "Correctness only" not in text


def test_curves_mark_t_0_and_name_every_submission(page: Any):
    curve = page.locator("main section").first.locator("figure svg").first
    text = curve.text_content()
    assert "t = 0" in text and "1. mine" in text and "baseline:inductor" in text
    assert curve.bounding_box()["width"] > 300


def test_a_task_leads_to_its_cases_and_back(page: Any):
    section = page.locator("main section").first
    section.get_by_text("By stratum and task").click()
    section.locator("a", has_text="task-0").click()
    assert page.locator("h1").inner_text() == "Task task-0"
    assert page.locator("td .verdict.hack").count() >= 1 and page.get_by_text("cached-by-pointer").count() >= 1
    page.get_by_text("PassNet leaderboard").first.click()
    assert page.title() == "PassNet leaderboard"


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_spills_over_the_edge(page: Any, width: int):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto(page.locator("table a[href^=tasks]").first.evaluate("a => a.href"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
