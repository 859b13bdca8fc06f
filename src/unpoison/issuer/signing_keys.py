"""The private keys of an issuer: PEM files, each with the public key beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.privacy_pass import IssuerKey, RsaPrivateKey, load_private_key, new_private_key
from unpoison.privacy_pass.keys import private_pem

PRIVATE, PUBLIC = 0o600, 0o644
"""File modes: a private key is readable by its owner only, a public one by everybody."""


class SigningKeys:
    """The keys that an issuer signs with, by the one byte that requests name them with.

    >>> keys = SigningKeys([new_private_key()])
    >>> keys.private(keys.public[0].truncated_id) is not None
    True
    """

    def __init__(self, keys: Sequence[RsaPrivateKey]) -> None:
        self.public = [IssuerKey.of(key) for key in keys]
        self._by_id = {
            public.truncated_id: (public, private)
            for public, private in zip(self.public, keys, strict=True)
        }
        if len(self._by_id) < len(keys):
            rule = "must differ in the last byte of their ids: make another key"
            raise InvalidParameter("keys", rule, "two with the same")

    @classmethod
    def load(cls, paths: Sequence[Path]) -> SigningKeys:
        """Read the keys of several PEM files."""
        return cls([_load(path) for path in paths])

    def private(self, truncated_id: int) -> tuple[IssuerKey, RsaPrivateKey] | None:
        """The key that a request names, if there is one."""
        return self._by_id.get(truncated_id)


def make_key_files(path: Path) -> tuple[IssuerKey, Path]:
    """Write a new private key to a path and its public key beside it; neither replaces a file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     key, public_path = make_key_files(Path(folder, "rides.pem"))
    ...     public_path.name, IssuerKey.from_pem(public_path.read_text()) == key
    ('rides.pub.pem', True)
    """
    private = new_private_key()
    key, public_path = IssuerKey.of(private), path.with_suffix(f".pub{path.suffix}")
    _write(path, private_pem(private), PRIVATE)
    _write(public_path, key.pem.encode(), PUBLIC)
    return key, public_path


def load_public_key(path: Path) -> IssuerKey:
    """Read a public key from a PEM file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     key, public_path = make_key_files(Path(folder, "rides.pem"))
    ...     load_public_key(public_path) == key
    True
    """
    try:
        return IssuerKey.from_pem(path.read_text(encoding="ascii"))
    except OSError as fault:
        raise InvalidFile(path, f"cannot be read ({fault.strerror})") from None
    except UnicodeDecodeError:
        raise InvalidFile(path, "must be a public key in PEM") from None
    except InvalidParameter as fault:
        raise InvalidFile(path, f"{fault.parameter} {fault.rule}") from None


def _write(path: Path, data: bytes, mode: int) -> None:
    try:
        # Private from the moment it exists: a later chmod would leave a gap.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as fault:
        raise InvalidFile(path, f"cannot be made ({fault.strerror})") from None
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _load(path: Path) -> RsaPrivateKey:
    try:
        return load_private_key(path.read_bytes())
    except OSError as fault:
        raise InvalidFile(path, f"cannot be read ({fault.strerror})") from None
    except InvalidParameter as fault:
        raise InvalidFile(path, f"{fault.parameter} {fault.rule}") from None
