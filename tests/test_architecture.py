"""The house rules that a machine can check."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("flows", "curate", "extract", "evaluate", "dedup", "warehouse")
SOURCES = [p for room in ROOMS for p in (ROOT / room).rglob("*.py")]


def test_arrows_between_folders_point_down_only():
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_dependency_brings_a_top_level_package_of_our_names():
    owners = metadata.packages_distributions()
    for room in ROOMS:
        assert set(owners.get(room, [])) <= {"passnet"}, f"{room} also comes from {owners[room]}"


def test_every_file_says_what_it_is_for():
    for path in SOURCES:
        assert re.match(r'(r?"""|#!)', path.read_text()), f"{path.relative_to(ROOT)} has no docstring on top"


def test_no_file_is_a_novel():
    for path in SOURCES:
        lines = len(path.read_text().splitlines())
        assert lines <= 350, f"{path.relative_to(ROOT)} has {lines} lines"


def test_data_is_never_code():
    """No way from data to execution: the words that would open one do not occur in our sources."""
    forbidden = re.compile(
        r"(?<![\w.])(eval|exec|pickle|cloudpickle|marshal|shelve)\s*[.(]|trust_remote_code\s*=\s*True|torch\.load\("
    )
    for path in SOURCES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not forbidden.search(line.split("#")[0]), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_sql_lives_in_files_of_its_own():
    statement = re.compile(r'"""?\s*(SELECT|CREATE (VIEW|MACRO|OR REPLACE)|INSERT INTO)\b', re.IGNORECASE)
    for path in SOURCES:
        if path.name == "sql.py":  # the one file that hands SQL to the engine
            continue
        assert not statement.search(path.read_text()), f"{path.relative_to(ROOT)} holds SQL"
