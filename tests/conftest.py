"""Fixtures that several test files share."""

from __future__ import annotations

import pytest

from support.command_line import Command
from support.postgres import database, postgres

__all__ = ["database", "postgres", "unpoison"]


@pytest.fixture
def unpoison(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, called in this process."""
    return Command(capsys)
