"""Paths on the command line: which files they stand for, and whether they can be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.system.atomic_files import whole_file
from unpoison.system.paths import check_output, expand

SUFFIXES = (".parquet", ".csv")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def names(paths: list[Path]) -> list[str]:
    return [str(path) for path in paths]


def test_expand_takes_files_folders_and_globs() -> None:
    Path("a/b").mkdir(parents=True)
    Path("a/folder.parquet").mkdir()
    for name in ("a/2.csv", "a/1.PARQUET", "a/b/3.csv", "a/.hidden.csv", "a/notes.txt", "r[1].csv"):
        Path(name).touch()
    inside = ["a/1.PARQUET", "a/2.csv", "a/b/3.csv"]
    assert names(expand(["a"], SUFFIXES)) == inside
    assert names(expand([Path("a"), "a/2.csv", Path("a").resolve()], SUFFIXES)) == inside
    assert names(expand(["a/*.csv"], SUFFIXES)) == ["a/2.csv"]
    assert names(expand(["a/**/*.csv"], SUFFIXES)) == ["a/2.csv", "a/b/3.csv"]
    assert names(expand(["a/[12]*"], SUFFIXES)) == ["a/1.PARQUET", "a/2.csv"]
    assert names(expand(["a/b/3.csv", "a/2.csv"], SUFFIXES)) == ["a/b/3.csv", "a/2.csv"]
    assert names(expand(["r[1].csv"], SUFFIXES)) == ["r[1].csv"]
    assert names(expand(["a/notes.txt"], SUFFIXES)) == ["a/notes.txt"]
    assert names(expand(["a"], [".txt"])) == ["a/notes.txt"]


def test_expand_counts_a_linked_file_once() -> None:
    Path("x.csv").touch()
    Path("y.csv").symlink_to("x.csv")
    assert names(expand(["y.csv", "x.csv"], SUFFIXES)) == ["y.csv"]


@pytest.mark.parametrize("path", ["none.csv", "none/*.csv", "empty", "empty/*"])
def test_expand_refuses_what_holds_nothing(path: str) -> None:
    Path("empty").mkdir()
    with pytest.raises(InvalidFile, match=r"does not exist|holds no"):
        expand([path], SUFFIXES)


def test_outputs_are_checked_before_any_work() -> None:
    Path("taken").mkdir()
    Path("file").touch()
    for path, rule in {
        "none/x": "folder that exists",
        "file/x": "folder that exists",
        "taken": "not a folder",
        "/dev/null": "not a device",
    }.items():
        with pytest.raises(InvalidParameter, match=rule) as caught:
            check_output(path, "--output")
        assert str(caught.value).startswith("--output must")
        assert str(caught.value).endswith(f"received {path}")
        with pytest.raises(InvalidParameter, match=rule), whole_file(path):
            pass
    check_output(None)
    check_output("new.CSV", suffixes=SUFFIXES)
    with pytest.raises(InvalidParameter, match=r"must end in \.parquet or \.csv; received new"):
        check_output("new", suffixes=SUFFIXES)
    assert sorted(os.listdir()) == ["file", "taken"]
