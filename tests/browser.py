"""Chromium without a window, for tests of pages; they are skipped, with the reason, without one.

`make setup-browser` installs Debian's. It is used by Playwright, whose own browsers are not.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REBOUND_HOST = "rebound.example"
"""A name of somebody else that has come to resolve to this machine."""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # So that what is refused is refused by the broker.
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
    f"--host-resolver-rules=MAP {REBOUND_HOST} 127.0.0.1",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; skips the test without one."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium: make setup-browser installs it")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
