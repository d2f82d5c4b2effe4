"""A source that a package of somebody else brings, installed as its metadata would be."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT, refused, shared_server

BROKEN = {
    "it does not import": "import nothing_of_that_name",
    "it ends Python when imported": "raise RuntimeError('no licence found')",
    "it cannot list": "class MyZoo:\n    name = 'my-zoo'\n    def list(self):\n        raise OSError('shelf is empty')",
    "its class is gone": "",
}


def example() -> str:
    """The class that CONTRIBUTING.md shows."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    return code


def installed(folder: Path, code: str) -> None:
    (folder / "my_package").mkdir()
    (folder / "my_package/__init__.py").touch()
    (folder / "my_package/zoo.py").write_text(code)
    facts = folder / "my_zoo-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: my-zoo\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[passnet.sources]\nmy-zoo = my_package.zoo:MyZoo\n")


def refresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{folder}")
    monkeypatch.setenv("PREFECT_API_URL", shared_server())
    command = [sys.executable, "-m", "flows.cli", "refresh", "--source", "my-zoo", "--workers", "1", "--json"]
    done = subprocess.run(
        [*command, "--warehouse", str(folder / "lake")], cwd=folder, capture_output=True, text=True, timeout=240
    )
    return done.returncode, done.stdout, done.stderr


def test_the_example_of_a_source_is_captured_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    installed(tmp_path, example())
    code, out, err = refresh(tmp_path, monkeypatch)
    assert code == 0, err
    found = json.loads(out)
    assert (found["models"], found["captured"], found["unique_graphs"], found["failed"]) == (2, 2, 2, {})


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN.keys())
def test_a_source_that_does_not_work_is_one_line_that_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
):
    installed(tmp_path, code)
    refused(refresh(tmp_path, monkeypatch), "'my-zoo' of the package my-zoo", "mend or remove that package")
    assert not (tmp_path / "lake/manifests").exists()
