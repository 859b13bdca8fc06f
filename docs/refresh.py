"""Refresh the outputs that the pages show: `make docs-outputs`.

Runs every Python block and every console command of a page, in the order of the page, and writes
what they print back into the page: into the text block after a Python block, and under each
command. The Python blocks of a page share one namespace, and everything runs in one empty folder.
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
"""The pages that show outputs; tests/test_docs.py runs the same pages."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*?(?:\\\n.*?)*)\n", re.MULTILINE)
"""A command after its prompt; a backslash at the end of a line continues it."""


class PageRunner:
    """Runs the blocks of one page in their order, and returns each with its new output."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        # A registered module, not a bare dictionary: `dataclass` and `pickle` look up the module of
        # the classes that a page defines.
        module = types.ModuleType("page")
        sys.modules["page"] = module
        self.namespace = module.__dict__
        self.printed: str | None = None
        """Output of the last Python block, until a text block takes it."""

    def refreshed(self, match: re.Match[str]) -> str:
        """The block with its output replaced; blocks of other kinds are returned unchanged."""
        kind, body = match.groups()
        if kind == "python":
            self.printed = self.run_python(body)
        elif kind == "console":
            body = self.run_console(body)
        elif kind == "text" and self.printed:
            body, self.printed = self.printed, None
        return f"```{kind}\n{body}```"

    def run_python(self, body: str) -> str:
        """Run a Python block, and return what it prints."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.chdir(self.folder):
            # dont_inherit: else this file's `from __future__ import annotations` would apply.
            exec(compile(body, "page", "exec", dont_inherit=True), self.namespace)
        return output.getvalue()

    def run_console(self, body: str) -> str:
        """Run the commands of a console block, and return the block with what each prints."""
        # The pages call `unpoison`: that of the environment in which this script runs.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        shown = []
        for command in COMMAND.findall(body):
            completed = subprocess.run(
                command.replace("\\\n", " "),
                shell=True,
                cwd=self.folder,
                env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,  # Some pages show a command that fails.
            )
            shown.append(f"$ {command}\n{completed.stdout}")
        return "\n".join(shown)


def refresh(path: Path) -> None:
    """Rewrite the outputs of one page."""
    with tempfile.TemporaryDirectory() as folder:
        text = path.read_text(encoding="utf-8")
        path.write_text(FENCE.sub(PageRunner(folder).refreshed, text), encoding="utf-8")


if __name__ == "__main__":
    for page in PAGES:
        refresh(DOCS / page)
