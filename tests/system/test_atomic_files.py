"""Files that are written whole or not at all, with the permissions and links that they had."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unpoison.system.atomic_files import whole_file


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def listing() -> list[str]:
    return sorted(os.listdir())


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(fault: type[BaseException]) -> None:
    Path("old.txt").write_text("old")

    def write(name: str) -> None:
        with whole_file(name) as file:
            file.write(b"half")
            file.flush()
            assert len(listing()) == 2
            raise fault

    for name in ("old.txt", "new.txt"):
        with pytest.raises(fault):
            write(name)
    assert listing() == ["old.txt"]
    assert Path("old.txt").read_text() == "old"


def test_the_old_file_stands_until_the_new_one_is_whole() -> None:
    Path("x.txt").write_text("old")
    with whole_file("x.txt") as file:
        file.write(b"new")
        file.flush()
        assert Path("x.txt").read_text() == "old"
    assert Path("x.txt").read_text() == "new"
    assert listing() == ["x.txt"]


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_permissions_are_those_of_any_new_file(umask: Callable[[int], int], mask: int) -> None:
    umask(mask)
    with whole_file("x.txt") as file:
        file.write(b"x")
    assert mode("x.txt") == 0o666 & ~mask


@pytest.mark.parametrize("kept", [0o600, 0o644, 0o640])
def test_a_file_that_is_replaced_keeps_its_permissions(kept: int) -> None:
    Path("x.txt").write_text("old")
    os.chmod("x.txt", kept)
    with whole_file("x.txt") as file:
        draft = next(name for name in listing() if name != "x.txt")
        assert mode(draft) == kept
        file.write(b"new")
    assert mode("x.txt") == kept


def test_a_link_stays_a_link() -> None:
    Path("deep").mkdir()
    Path("deep/real.txt").write_text("old")
    Path("link.txt").symlink_to("deep/real.txt")
    with whole_file("link.txt") as file:
        file.write(b"new")
    assert Path("link.txt").is_symlink()
    assert Path("deep/real.txt").read_text() == "new"


def test_names_may_be_as_long_as_the_system_allows() -> None:
    name = "x" * 251 + ".txt"
    with whole_file(name) as file:
        file.write(b"x")
    assert listing() == [name]
