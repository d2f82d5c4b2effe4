"""A crawl with a ledger of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from tests.hub.population import Population
from tests.hub.server import Hub, serving


@pytest.fixture(autouse=True)
def _own_ledger(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # the transformers source goes offline when imported
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("PASSNET_HUB_CACHE", str(tmp_path / "ledger"))


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Population(2500, bases=30)) as running:
        yield running
