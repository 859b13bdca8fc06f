"""The command line as tests call it: run in this process, with its output captured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from unpoison.cli import run

FORMATS = (".parquet", ".csv")


def write_table(path: str | Path, columns: dict[str, Any]) -> None:
    write = pq.write_table if Path(path).suffix == ".parquet" else pacsv.write_csv
    write(pa.table(columns), path)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        body = json.loads(self.out, parse_constant=_refuse_constant)
        assert isinstance(body, dict)
        return body


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@dataclass(frozen=True)
class Command:
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> Outcome:
        """Run a command, whatever its exit code."""
        self.capsys.readouterr()
        code = run([str(word) for word in arguments])
        out, err = self.capsys.readouterr()
        return Outcome(code, out, err)

    def done(self, *arguments: object) -> Outcome:
        """Run a command that succeeds: exit code 0, and nothing on standard error."""
        outcome = self(*arguments)
        assert (outcome.code, outcome.err) == (0, "")
        return outcome

    def refused(self, *arguments: object) -> str:
        """Run a command that refuses its input, and return the line that it prints.

        Exit code 2, one line on standard error, nothing on standard output, no file changed.
        """
        before = contents(Path.cwd())
        outcome = self(*arguments)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("unpoison: ")
        assert outcome.err.count("\n") == 1
        assert outcome.err.endswith("\n")
        assert "Traceback" not in outcome.err
        assert not outcome.err.rstrip().endswith(":")
        assert contents(Path.cwd()) == before
        return outcome.err


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below a folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }
