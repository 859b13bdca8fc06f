"""Rules of WCAG 2 A and AA that a page in a browser breaks, by axe-core."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from support.programs import missing

if TYPE_CHECKING:
    from playwright.sync_api import Page

OPTIONS = {
    "resultTypes": ["violations"],
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    },
}


def violations(page: Page) -> list[str]:
    """One line for each element that breaks a rule: the rule, the element, and what to mend."""
    if importlib.util.find_spec("axe_playwright_python") is None:
        missing("the Python package axe-playwright-python (pip install 'unpoison[dev]')")
    from axe_playwright_python.sync_playwright import Axe

    answer = Axe().run(page, options=OPTIONS).response
    return [
        f"{rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in answer["violations"]
        for node in rule["nodes"]
    ]
