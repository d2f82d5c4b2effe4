"""One warm parent of workers for the room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluate.judge.workers import Workers


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    with Workers("cpu") as started:
        yield started
