"""Files that appear whole or not at all, and names that never replace a file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from unpoison.system.paths import check_output


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to, renamed to `path` at the end: it appears whole or not at all.

    A file that is replaced keeps its permissions, and a link to it stays a link.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Path(folder, "answer.txt")
    ...     with whole_file(target) as file:
    ...         written, there = file.write(b"42"), target.exists()
    ...     there, target.exists()
    (False, True)
    """
    check_output(path)
    target = Path(path).resolve()
    draft = target.parent / f".unpoison-{secrets.token_hex(8)}"
    try:
        with draft.open("xb") as file:
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            yield file
            file.flush()
            # Renaming before the content is on disk could leave an empty file after a power cut.
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def name_once(draft: Path, path: Path) -> None:
    """Give a finished draft its name; FileExistsError if the name is taken.

    A second name never takes the place of a file; where files have only one, a copy does not.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     draft = Path(folder, "draft")
    ...     draft.touch()
    ...     name_once(draft, draft.with_name("keys"))
    ...     draft.with_name("keys").exists()
    True
    """
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError, AttributeError):
        copy = os.open(
            path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600
        )
        with open(copy, "wb") as file:
            file.write(draft.read_bytes())
            file.flush()
            os.fsync(file.fileno())
