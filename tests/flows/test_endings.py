"""How a command ends when its reader, its terminal or its supervisor does something unusual."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.flows import toy
from tests.flows.conftest import HUNG, ROOT, finish, start


def passnet(*words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
    given: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([sys.executable, "-m", "flows.cli", *words], cwd=ROOT, timeout=HUNG, **given)  # type: ignore[call-overload]


def test_a_terminal_that_knows_ascii_alone_is_shown_every_name(lake: Path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = passnet("sql", "SELECT name FROM models WHERE name LIKE 'host%'", "--warehouse", str(lake), env=environment)
    assert (done.returncode, done.stderr) == (0, b"") and b"hostile" in done.stdout


def test_closed_output_is_no_accident(lake: Path):
    command = f"exec {sys.executable} -m flows.cli sql 'SELECT 1' --warehouse '{lake}' >&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=HUNG)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", ["sql 'FROM range(200000)'", "sql 'FROM range(200000)' --csv", "snapshots"])
def test_a_reader_that_has_seen_enough_is_no_failure(lake: Path, words: str):
    command = f"{sys.executable} -m flows.cli {words} --warehouse '{lake}' | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=HUNG)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_refresh_asked_to_end_ends_soon_and_goes_on_when_asked_again(tmp_path: Path, sent: signal.Signals):
    lake, log = tmp_path / "lake", tmp_path / "log"
    process = start(lake, log, pace=0.3, models="good-*")
    began = time.monotonic()
    while not (log.exists() and log.read_text().count("\n") >= 2):
        assert time.monotonic() - began < HUNG and process.poll() is None
        time.sleep(0.05)
    process.send_signal(sent)
    code, out, err = finish(process)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "passnet: interrupted; run the same command again to go on"
    assert "Traceback" not in err and "leaked" not in err
    done = log.read_text().split()
    code, out, err = finish(start(lake, log, models="good-*"))
    assert code == 0 and json.loads(out)["captured"] == 20, err
    again = log.read_text().split()
    assert len(again) == len(set(again)) == 20 and again[: len(done)] == done, "nothing finished is done again"
    assert toy.published(lake)
