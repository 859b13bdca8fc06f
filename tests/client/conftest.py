"""Fixtures of the tests of the browser's client."""

from __future__ import annotations

from support.browser import browser_fixture
from support.browser_client import collector, context, page

__all__ = ["browser", "collector", "context", "page"]

browser = browser_fixture()
