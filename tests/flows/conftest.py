"""Refreshes in processes of their own, as a user runs them; Prefect keeps what it keeps in a folder of the test run."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flows import server
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
