"""The keys that sign tickets: a file beside the database, so that a copy of one forges nothing."""

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
PRIVATE = 0o600
Put = Callable[[Path, Path], None]


class KeyFile:
    """Keys, oldest first. The last one signs; all of them are believed.

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
        """The keys; a first one is made if there is no file: of servers that start at once, by one.

        Others would sign with keys that are nowhere.
        """
        if not self.path.exists():
            with suppress(FileExistsError):
                self._add([], name_once)
        return self.load()

    def rotate(self) -> list[str]:
        """Sign with a new key from now on; tickets that are out stay valid."""
        return self._add(self.load() if self.path.exists() else [])

    def forget(self) -> list[str]:
        """Believe only the newest key; devices with older tickets ask for theirs again."""
        return self._save(self.load()[-1:])

    def load(self) -> list[str]:
        """Read the file."""
        try:
            keys = json.loads(self.path.read_text(encoding="utf-8"))["keys"]
        except OSError as fault:
            raise InvalidFile(self.path, f"cannot be read ({fault.strerror})") from None
        except (LookupError, TypeError, ValueError):
            raise InvalidFile(self.path, "is not a file of keys") from None
        if not isinstance(keys, list) or not keys or not all(_is_key(each) for each in keys):
            raise InvalidFile(self.path, "is not a file of keys")
        return keys

    def _add(self, keys: list[str], put: Put = os.replace) -> list[str]:
        return self._save([*keys, secrets.token_hex(KEY_BYTES)], put)

    def _save(self, keys: list[str], put: Put = os.replace) -> list[str]:
        """Whole or not at all, readable by nobody else from its first moment on."""
        part = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.part")
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as file:
                file.write(json.dumps({"keys": keys}, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            put(part, self.path)
        finally:
            part.unlink(missing_ok=True)
        return keys


def _is_key(key: object) -> bool:
    return isinstance(key, str) and len(key) == 2 * KEY_BYTES
