"""A real headless Chromium for tests, driven by playwright. `make browser` installs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Without these Chromium looks up hosts of its own, which is no request of the page.
_QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
          "--disable-component-update", "--disable-sync")  # fmt: skip


def chromium() -> str | None:
    """The browser on this machine: named by PASSNET_CHROMIUM, on the path, or installed by playwright."""
    for name in (os.environ.get("PASSNET_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and (found := shutil.which(name)):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        own = play.chromium.executable_path
    return own if own and Path(own).exists() else None


@contextmanager
def opened() -> Iterator[object]:
    """A running browser. Skips the test where there is none."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'")
    from playwright.sync_api import sync_playwright

    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: `make browser` installs one")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=list(_QUIET))
        try:
            yield browser
        finally:
            browser.close()
