"""A real Chromium for tests: skipped where it is missing, unless everything is required."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from support.programs import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _chromium() -> str:
    """The path of Chromium; skips or fails the test without it or without playwright."""
    path = shutil.which("chromium")
    if importlib.util.find_spec("playwright") is None:
        return missing("the Python package playwright (pip install 'unpoison[dev]')")
    if path is None:
        return missing("the browser chromium")
    return path


@contextmanager
def launch() -> Iterator[Browser]:
    """Run a headless browser, and close it at the end."""
    executable = _chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a file.

    Not one for the whole session: as long as playwright runs, its event loop is this thread's
    running one, and other files' tests could not run theirs.
    """
    with launch() as launched:
        yield launched
