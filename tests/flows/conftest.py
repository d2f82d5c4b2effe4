"""Refreshes in processes of their own, as a user runs them; Prefect keeps what it keeps in a folder of the test run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flows import toy

ROOT = Path(__file__).parents[2]
#: Seconds after which a refresh of toys counts as hung.
HUNG = 240


@pytest.fixture(scope="session", autouse=True)
def _own_prefect(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect")))
        patch.delenv("PREFECT_API_URL", raising=False)
        patch.delenv("PASSNET_WAREHOUSE", raising=False)
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


Start = Callable[..., "subprocess.Popen[str]"]


def start(warehouse: Path, log: Path | None = None, pace: float = 0.0, **options: Any) -> subprocess.Popen[str]:
    """A refresh of the toy source, begun. `log` gets a line for every finished capture."""
    more = {toy.PACE: str(pace), **({toy.LOG: str(log)} if log else {})}
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


def passnet(*words: str, cwd: Path, text: str | None = None, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one `passnet` command."""
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words],
        cwd=cwd,
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=HUNG,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes], dict[str, Any]]:
    """A refresh of all toys that nobody disturbed: its warehouse, the bytes it published, its JSON object."""
    import json

    root = tmp_path_factory.mktemp("uninterrupted") / "lake"
    code, out, err = finish(start(root))
    assert code == 0, err
    return root, toy.published(root), json.loads(out)
