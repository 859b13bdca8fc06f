"""Summaries on disk with their manifest: one file, or a folder with one for each window."""

from __future__ import annotations

import hashlib
from pathlib import Path

from unpoison.errors import IncompatibleSummaries, InvalidFile, InvalidParameter
from unpoison.plan import Plan
from unpoison.summary import Summary
from unpoison.summary.manifest import MANIFEST_SUFFIX, Manifest, digest
from unpoison.summary.tally import Tally
from unpoison.system.atomic_files import whole_file
from unpoison.system.paths import check_output

SUMMARY_SUFFIX = ".summary"


class Store:
    """One summary file, or a folder of windows, that reports can be added to.

    The manifest is written last, with the digests of the summaries: where something stopped in
    between, they do not agree, and nothing can be counted twice.

    >>> from tempfile import TemporaryDirectory
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "today.summary"))
    ...     store.save({None: Summary.empty(plan)}, Manifest({"a.csv": "aa"}))
    ...     tally, manifest = store.load(plan)
    >>> list(tally), dict(manifest.files)
    ([None], {'a.csv': 'aa'})
    """

    def __init__(self, path: Path, width: int | None = None) -> None:
        self.path = path
        self.width = width
        self.windows = windows = width is not None
        self.manifest = (
            path / f"windows{MANIFEST_SUFFIX}" if windows else Path(f"{path}{MANIFEST_SUFFIX}")
        )

    @property
    def exists(self) -> bool:
        """Whether there is anything yet."""
        if self.windows:
            return self.path.is_dir() and any(self.path.iterdir())
        return self.path.exists()

    def check(self, adding: bool) -> None:
        """Refuse, before any work is done, a place that cannot be written to."""
        if not self.windows:
            check_output(self.path, "--output")
            return
        check_output(self.manifest if self.path.is_dir() else self.path, "--output")
        if self.path.exists() and not self.path.is_dir():
            raise InvalidParameter("--output", "must be a folder for windows", self.path)
        if self.exists and not adding:
            rule = "must be an empty folder for windows, unless with --add"
            raise InvalidParameter("--output", rule, self.path)

    def load(self, plan: Plan) -> tuple[Tally, Manifest]:
        """What is there, with the files it holds; nothing if there is nothing."""
        if not self.exists:
            return {}, Manifest()
        if not self.manifest.exists():
            raise InvalidFile(self.path, "has no manifest beside it: nothing can be added to it")
        manifest, tally = Manifest.load(self.manifest), {}
        for name, content in manifest.summaries.items():
            path = self._folder / name
            if not path.is_file() or digest(path) != content:
                raise InvalidFile(path, "is not what its manifest says: count all files anew")
            summary = Summary.load(path)
            if summary.plan != plan:
                raise IncompatibleSummaries(f"{path}: was counted by another plan")
            if summary.window is not None and summary.window.width != self.width:
                raise InvalidFile(path, "is of a window of another width")
            tally[summary.window] = summary
        return tally, manifest

    def save(self, tally: Tally, manifest: Manifest) -> None:
        """Write all summaries, and then the manifest."""
        if self.windows:
            self.path.mkdir(exist_ok=True)
        written = {}
        for window, summary in sorted(tally.items(), key=lambda item: str(item[0])):
            name = self.path.name if window is None else f"{window.file_name}{SUMMARY_SUFFIX}"
            data = summary.to_bytes()
            with whole_file(self._folder / name) as file:
                file.write(data)
            written[name] = hashlib.sha256(data).hexdigest()
        Manifest(manifest.files, written).save(self.manifest)

    @property
    def _folder(self) -> Path:
        return self.path if self.windows else self.path.parent
