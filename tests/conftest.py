"""Fixtures that several test files share."""

from __future__ import annotations

import pytest

from command import Command
from postgres import database, postgres

__all__ = ["database", "postgres", "unpoison"]


@pytest.fixture
def unpoison(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, called in this process."""
    return Command(capsys)
