"""Runs what the pages show, and writes down what it prints: `make docs-outputs`.

Every Python block of a page runs in one namespace, every console command in one empty folder, in
the order of the page. The text block after a Python block, and the lines under a command, are
replaced by the output.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGES = ("index.md", "guide.md", "cli.md", "evaluation.md", "scale.md", "../README.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*?(?:\\\n.*?)*)\n", re.MULTILINE)


class Page:
    """One page on its way from top to bottom."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        module = types.ModuleType("page")
        sys.modules["page"] = module
        self.names = module.__dict__
        self.printed: str | None = None

    def fence(self, match: re.Match[str]) -> str:
        """A fence with its output made new."""
        kind, body = match.groups()
        if kind == "python":
            self.printed = self.python(body)
        elif kind == "console":
            body = self.console(body)
        elif kind == "text" and self.printed:
            body, self.printed = self.printed, None
        return f"```{kind}\n{body}```"

    def python(self, body: str) -> str:
        """What a block prints."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.chdir(self.folder):
            exec(compile(body, "page", "exec", dont_inherit=True), self.names)
        return output.getvalue()

    def console(self, body: str) -> str:
        """The commands of a block, each with what it prints."""
        parts = []
        for command in COMMAND.findall(body):
            done = subprocess.run(
                command.replace("\\\n", " "),
                shell=True,
                cwd=self.folder,
                env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            parts.append(f"$ {command}\n{done.stdout}")
        return "\n".join(parts)


def refresh(path: Path) -> None:
    """Rewrite one page."""
    with tempfile.TemporaryDirectory() as folder:
        text = path.read_text(encoding="utf-8")
        path.write_text(FENCE.sub(Page(folder).fence, text), encoding="utf-8")


if __name__ == "__main__":
    for page in PAGES:
        refresh(DOCS / page)
