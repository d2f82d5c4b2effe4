"""Refreshes in processes of their own, as a user runs them; Prefect keeps what it keeps in a folder of the test run."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import flows.refresh
from flows import cli, server
from tests.flows import toy

ROOT = Path(__file__).parents[2]
#: Seconds after which a refresh of toys counts as hung.
HUNG = 240

_session = contextlib.ExitStack()


@pytest.fixture(scope="session", autouse=True)
def _own_prefect(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect")))
        patch.delenv("PREFECT_API_URL", raising=False)
        patch.delenv("PASSNET_WAREHOUSE", raising=False)
        patch.setenv("PYTHONPATH", str(ROOT))
        with _session:
            yield
        shared_server.cache_clear()


@functools.cache
def shared_server() -> str:
    """The URL of one Prefect API for all refreshes that do not test their own: a start costs seconds."""
    return _session.enter_context(server.started())()


def start(
    warehouse: Path, log: Path | None = None, pace: float = 0.0, own_server: bool = False, **options: Any
) -> subprocess.Popen[str]:
    """A refresh of the toy source, begun. `log` gets a line for every finished capture."""
    more = {toy.PACE: str(pace), **({toy.LOG: str(log)} if log else {})}
    if not own_server:
        more["PREFECT_API_URL"] = shared_server()
    words = [f"{name}={value}" for name, value in options.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.flows.toy", str(warehouse), *words],
        cwd=ROOT,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, stdout and stderr."""
    out, err = process.communicate(timeout=HUNG)
    return process.returncode, out, err


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes], dict[str, Any]]:
    """A refresh of all toys that nobody disturbed: its warehouse, the bytes it published, its JSON object."""
    import json

    root = tmp_path_factory.mktemp("uninterrupted") / "lake"
    code, out, err = finish(start(root, own_server=True))
    assert code == 0, err
    return root, toy.published(root), json.loads(out)


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
