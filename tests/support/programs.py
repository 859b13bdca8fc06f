"""Programs of the system that some tests need."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def missing(part: str) -> NoReturn:
    """Skip a test for the lack of a part, or let it fail where all must be run."""
    if os.environ.get("UNPOISON_REQUIRE_ALL") == "1":
        pytest.fail(f"this test needs {part}", pytrace=False)
    pytest.skip(f"this test needs {part}")


def needed_program(name: str) -> str:
    """The path of a program without which a test cannot be run."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return path if path is not None else missing(name)
