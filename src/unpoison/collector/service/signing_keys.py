"""The keys that sign tickets, in a file of their own.

They are not in the database, so that whoever gets a copy of it still cannot forge tickets.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from unpoison.errors import InvalidFile
from unpoison.system.atomic_files import name_once

KEY_BYTES = 32
"""256 bits, as long as the output of HMAC-SHA256: longer keys would not be stronger."""
PRIVATE = 0o600
"""File mode: readable and writable by the owner only."""
Publish = Callable[[Path, Path], None]
"""Gives a finished file its final name."""


class KeyFile:
    """A JSON file of keys, oldest first: the last one signs, all of them verify.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = KeyFile(Path(folder, "tickets.keys"))
    ...     first = file.load_or_make()
    ...     both = file.rotate()
    ...     last = file.forget()
    >>> both[:1] == first, last == both[1:]
    (True, True)
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load_or_make(self) -> list[str]:
        """The keys; if there is no file yet, it is made with one key."""
        if not self.path.exists():
            # Of servers that start together, one makes the file and the others read it: a key that
            # was replaced would have signed tickets that nobody can verify.
            with suppress(FileExistsError):
                self._add([], name_once)
        return self.load()

    def rotate(self) -> list[str]:
        """Add a key, which signs from now on; tickets that were issued before stay valid."""
        return self._add(self.load() if self.path.exists() else [])

    def forget(self) -> list[str]:
        """Drop all keys but the newest; devices with older tickets have to ask for theirs again."""
        return self._save(self.load()[-1:])

    def load(self) -> list[str]:
        """Read and check the file."""
        try:
            keys = json.loads(self.path.read_text(encoding="utf-8"))["keys"]
        except OSError as fault:
            raise InvalidFile(self.path, f"cannot be read ({fault.strerror})") from None
        except (LookupError, TypeError, ValueError):
            raise InvalidFile(self.path, "is not a file of keys") from None
        if not isinstance(keys, list) or not keys or not all(_is_key(key) for key in keys):
            raise InvalidFile(self.path, "is not a file of keys")
        return keys

    def _add(self, keys: list[str], publish: Publish = os.replace) -> list[str]:
        return self._save([*keys, secrets.token_hex(KEY_BYTES)], publish)

    def _save(self, keys: list[str], publish: Publish = os.replace) -> list[str]:
        """Write to a draft, then give it its name: the file is never seen half written."""
        draft = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.part")
        try:
            # Private from the moment it exists: a later chmod would leave a gap.
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as file:
                file.write(json.dumps({"keys": keys}, indent=1) + "\n")
                file.flush()
                # Before it is named: after a power cut the name must not point to an empty file.
                os.fsync(file.fileno())
            publish(draft, self.path)
        finally:
            draft.unlink(missing_ok=True)
        return keys


def _is_key(key: object) -> bool:
    return isinstance(key, str) and len(key) == 2 * KEY_BYTES
