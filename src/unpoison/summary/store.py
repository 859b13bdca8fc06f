"""Summaries on disk that report files can be added to: one file, or a folder with one a window."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from filelock import BaseFileLock, FileLock, Timeout

from unpoison.errors import (
    IncompatibleSummaries,
    InvalidFile,
    InvalidParameter,
    UnpoisonError,
)
from unpoison.plan import Plan
from unpoison.summary.manifest import MANIFEST_SUFFIX, Manifest, digest, digests, new_files
from unpoison.summary.summary import Summary
from unpoison.summary.tally import Advance, Tally, add_tally, summary_of
from unpoison.summary.windows import PER_SECOND, Window
from unpoison.system.atomic_files import whole_file
from unpoison.system.paths import check_output

SUMMARY_SUFFIX = ".summary"
LOCK_SECONDS = 600.0
"""Seconds to wait for another process: longer than counting some 10^10 reports takes it."""
Progress = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Shows a labelled bar, of a known length or none, for as long as its context lasts."""


def silent(label: str, total: int | None) -> AbstractContextManager[Advance]:
    """A progress bar that shows nothing.

    >>> with silent("Counting", 3) as advance:
    ...     advance(1)
    """
    return nullcontext(lambda done: None)


class CountedFiles(Protocol):
    """Counts of some files: summaries by window, and files that could not be counted."""

    @property
    def tally(self) -> Tally:
        """The summary of each window."""

    @property
    def bad(self) -> Mapping[Path, UnpoisonError]:
        """Files that could not be counted, with their faults."""


CountFiles = Callable[[Sequence[Path], Advance], CountedFiles]
"""Counts files, reporting bytes done: an engine, seen from here."""


@dataclass(frozen=True)
class Addition:
    """The outcome of adding files to a store: its total, and how many files were counted.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> Addition(Summary.empty(plan), windows=[], counted=2, known=1, bad={}).counted
    2
    """

    total: Summary
    windows: list[Window]
    counted: int
    known: int
    bad: Mapping[Path, UnpoisonError]


class Store:
    """One summary file, or a folder of windows, that reports can be added to.

    The manifest is written last, with the digests of the summaries: if a process stops between the
    two, they do not agree, and nothing can be counted twice.

    >>> from tempfile import TemporaryDirectory
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "today.summary"))
    ...     store.save({None: Summary.empty(plan)}, Manifest({"a.csv": "aa"}))
    ...     tally, manifest = store.load(plan)
    >>> list(tally), dict(manifest.files)
    ([None], {'a.csv': 'aa'})
    """

    def __init__(self, path: Path, window_width: int | None = None) -> None:
        self.path = path
        self.window_width = window_width
        self.windows = windows = window_width is not None
        self.manifest = (
            path / f"windows{MANIFEST_SUFFIX}" if windows else Path(f"{path}{MANIFEST_SUFFIX}")
        )

    @property
    def exists(self) -> bool:
        """Whether the summary, or a folder with something in it, is there."""
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

    @contextmanager
    def locked(self, progress: Progress | None = None) -> Iterator[None]:
        """Keep other processes from changing the store; wait for one that is changing it."""
        target = self.path.resolve()
        lock = FileLock(target.with_name(f".{target.name}.lock"))
        self._acquire(lock, progress or silent)
        try:
            yield
        finally:
            # Removed while it is held: a process that waits for it notices, and makes a new one.
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def _acquire(self, lock: BaseFileLock, progress: Progress) -> None:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            try:
                with progress("Waiting for another process", None):
                    lock.acquire(timeout=LOCK_SECONDS)
            except Timeout:
                fault = "another process is still adding to it; try again when that has ended"
                raise InvalidFile(self.path, fault) from None

    def add(
        self,
        paths: Sequence[Path],
        plan: Plan,
        count: CountFiles,
        *,
        keep: bool,
        progress: Progress | None = None,
    ) -> Addition:
        """Count the files that the store does not hold yet, and write what it holds then.

        Without `keep`, what the store held before is replaced. Two processes that add at the same
        time do so one after the other.
        """
        bar = progress or silent
        with self.locked(bar):
            self.check(adding=keep)
            tally, held = self.load(plan) if keep else ({}, Manifest())
            with bar("Hashing", len(paths)) as advance:
                contents = digests(paths, advance)
            fresh, known = new_files(paths, contents, held)
            with bar("Counting", sum(path.stat().st_size for path in fresh)) as advance:
                counted = count(list(fresh), advance)
            add_tally(tally, counted.tally)
            self._settle(tally, plan)
            good = {path: content for path, content in fresh.items() if path not in counted.bad}
            self.save(tally, held | {str(path.resolve()): text for path, text in good.items()})
        windows = sorted(window for window in tally if window is not None)
        return Addition(summary_of(tally, plan), windows, len(good), len(known), counted.bad)

    def _settle(self, tally: Tally, plan: Plan) -> None:
        """Give reports that belong to no window (left out for want of a time) to the first one."""
        if not self.windows:
            tally.setdefault(None, Summary.empty(plan))
            return
        without_window = tally.pop(None, None)
        if without_window is not None and tally:
            first = min(window for window in tally if window is not None)
            invalid = tally[first].invalid + without_window.invalid
            tally[first] = replace(tally[first], invalid=invalid)

    def load(self, plan: Plan) -> tuple[Tally, Manifest]:
        """The summaries that are there, and the files they hold; nothing if there is nothing."""
        if not self.exists:
            return {}, Manifest()
        if not self.manifest.exists():
            raise InvalidFile(self.path, "has no manifest beside it: nothing can be added to it")
        manifest, tally = Manifest.load(self.manifest), {}
        for path, content in self._named_by(manifest).items():
            if not path.is_file() or digest(path) != content:
                raise InvalidFile(path, "is not what its manifest says: count all files anew")
            summary = Summary.load(path)
            if summary.plan != plan:
                raise IncompatibleSummaries(f"{path}: was counted by another plan")
            self._check_window(path, summary)
            tally[summary.window] = summary
        return tally, manifest

    def _named_by(self, manifest: Manifest) -> dict[Path, str]:
        """The summary files of a manifest with their digests.

        A store of one file has one summary, whatever it was called when the manifest was written:
        both may have been renamed since, and another file may have that name now.
        """
        if self.windows:
            return {self.path / name: text for name, text in manifest.summaries.items()}
        if len(manifest.summaries) != 1:
            raise InvalidFile(self.manifest, "is not the manifest of one summary")
        return {self.path: next(iter(manifest.summaries.values()))}

    def _check_window(self, path: Path, summary: Summary) -> None:
        """Summaries must be what this store would write at their paths, or others get lost."""
        window = summary.window
        if not self.windows and window is not None:
            raise InvalidFile(path, "is of a window of time: add to its folder, with --window")
        if self.windows and window is None:
            raise InvalidFile(path, "is not of a window of time")
        if window is not None and self.window_width is not None:
            width, wanted = (micros // PER_SECOND for micros in (window.width, self.window_width))
            if width != wanted:
                raise InvalidFile(path, f"is of a window of {width:,} seconds, not of {wanted:,}")
        if self._path_of(window) != path:
            raise InvalidFile(path, "is of another window than its name says")

    def save(self, tally: Tally, manifest: Manifest) -> None:
        """Write all summaries, and then the manifest."""
        if self.windows:
            self.path.mkdir(exist_ok=True)
        written = {}
        for window, summary in sorted(tally.items(), key=lambda item: str(item[0])):
            path, data = self._path_of(window), summary.to_bytes()
            with whole_file(path) as file:
                file.write(data)
            written[path.name] = hashlib.sha256(data).hexdigest()
        Manifest(manifest.files, written).save(self.manifest)

    def _path_of(self, window: Window | None) -> Path:
        """The path of a window's summary; without windows the store's one file."""
        return self.path if window is None else self.path / f"{window.file_name}{SUMMARY_SUFFIX}"
