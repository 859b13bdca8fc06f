"""The manifest of a summary: which files it holds, so that none is counted twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from unpoison.errors import InvalidFile
from unpoison.system.atomic_files import whole_file
from unpoison.system.cores import usable_cores

MANIFEST_SUFFIX = ".manifest.json"
FORMAT = 1
"""Raised when a manifest of this version could be misread by an earlier one."""


@dataclass(frozen=True)
class Manifest:
    """Files by their paths, each with the SHA-256 of its content.

    >>> held = Manifest({"monday.parquet": "aa"})
    >>> sorted((held | {"tuesday.parquet": "bb"}).files)
    ['monday.parquet', 'tuesday.parquet']
    """

    files: Mapping[str, str] = field(default_factory=dict)
    summaries: Mapping[str, str] = field(default_factory=dict)
    """The summary files it belongs to, by name, with the SHA-256 of each."""

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Read a manifest from its JSON file."""
        try:
            head = json.loads(path.read_bytes())
            files, summaries = ({**head[part]} for part in ("files", "summaries"))
        except OSError as fault:
            raise InvalidFile(path, f"cannot be read ({fault.strerror})") from None
        except (LookupError, TypeError, ValueError, AttributeError):
            raise InvalidFile(path, "is not a manifest") from None
        if head.get("format") != FORMAT:
            raise InvalidFile(path, f"has the format {head.get('format')}; known is {FORMAT}")
        return cls(files, summaries)

    def save(self, path: Path) -> None:
        """Write the JSON file, whole or not at all."""
        head = {"format": FORMAT, "files": self.files, "summaries": self.summaries}
        text = json.dumps(head, indent=1)
        with whole_file(path) as file:
            file.write(text.encode() + b"\n")

    def __or__(self, more: Mapping[str, str]) -> Manifest:
        return replace(self, files={**self.files, **more})


def digest(path: Path) -> str:
    """The SHA-256 of a file's content.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "empty.csv")
    ...     path.touch()
    ...     digest(path)[:8]
    'e3b0c442'
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        raise InvalidFile(path, f"cannot be read ({fault.strerror})") from None


def digests(paths: Sequence[Path], advance: Callable[[int], None] | None = None) -> list[str]:
    """The digest of each file, by all cores: hashing lets other threads run meanwhile.

    >>> digests([])
    []
    """
    contents = []
    with ThreadPoolExecutor(usable_cores()) as pool:
        for content in pool.map(digest, paths):
            contents.append(content)
            if advance is not None:
                advance(1)
    return contents


def new_files(
    paths: Iterable[Path], digests: Iterable[str], held: Manifest
) -> tuple[dict[Path, str], list[Path]]:
    """Files that are not held yet, with their digests, and those that are.

    A file whose content is held under another name would be counted twice, and one that has
    changed since it was counted cannot be counted again: both are refused.

    >>> held = Manifest({str(Path("a.csv").resolve()): "aa"})
    >>> new_files([Path("a.csv"), Path("b.csv")], ["aa", "bb"], held)
    ({PosixPath('b.csv'): 'bb'}, [PosixPath('a.csv')])
    """
    fresh: dict[Path, str] = {}
    known: list[Path] = []
    owners = {content: name for name, content in held.files.items()}
    for path, content in zip(paths, digests, strict=True):
        name = str(path.resolve())
        if held.files.get(name) == content:
            known.append(path)
            continue
        if name in held.files:
            raise InvalidFile(path, "has changed since it was counted; count all files anew")
        if content in owners:
            fault = f"holds the same as {owners[content]}, and would be counted twice"
            raise InvalidFile(path, fault)
        owners[content] = name
        fresh[path] = content
    return fresh, known
