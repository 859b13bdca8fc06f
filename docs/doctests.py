"""Griffe extension that shows the doctests of docstrings as code on the API page.

Docstrings have their examples as plain doctests. Markdown would render `>>>` as nested quotations,
so each example is put between fences first. mkdocs.yml loads this file.
"""

from __future__ import annotations

from typing import Any

import griffe


class FencedDoctests(griffe.Extension):
    """Puts the doctests of every docstring that griffe collects between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with each example between fences; as in doctest, an empty line ends an example."""
    lines: list[str] = []
    inside = False
    # The empty line that is added closes an example at the end of the text.
    for line in [*text.splitlines(), ""]:
        if not inside and line.startswith(">>>"):
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join(lines).rstrip()
