"""Report files to summaries by any engine: a file is counted wholly or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from unpoison.engines.base import Engine
from unpoison.engines.local import LocalEngine
from unpoison.engines.work import Counted, Job, Part, parts_of
from unpoison.errors import BadFiles, UnpoisonError
from unpoison.plan import Plan
from unpoison.reports.writing import REPORT_SUFFIXES
from unpoison.summary import Summary
from unpoison.summary.tally import Tally, add_tally, summary_of
from unpoison.system.paths import expand

Advance = Callable[[int], None]
WORTH_COMPILING = 2**29
"""Bytes; with fewer, Numba takes longer to start than it saves."""


@dataclass
class Counting:
    """The result of counting files: summaries by window, and the faults of bad files.

    >>> Counting(files=3).faults
    {}
    """

    files: int
    tally: Tally = field(default_factory=dict)
    faults: dict[Path, tuple[int, UnpoisonError]] = field(default_factory=dict)

    def summary(self, plan: Plan) -> Summary:
        """The sum of all windows."""
        return summary_of(self.tally, plan)

    @property
    def bad(self) -> dict[Path, UnpoisonError]:
        """The files that could not be counted, each with its first fault."""
        return {path: fault for path, (_, fault) in sorted(self.faults.items())}

    def blame(self, part: Part, fault: UnpoisonError) -> None:
        """Note a fault, unless an earlier one of the same file is known."""
        earlier = self.faults.get(part.path)
        if earlier is None or part.rows_before < earlier[0]:
            self.faults[part.path] = part.rows_before, fault


def count_files(
    paths: Iterable[Path],
    job: Job,
    engine: Engine | None = None,
    *,
    skip_bad_files: bool = False,
    advance: Advance | None = None,
) -> Counting:
    """Count all files; `advance` receives how many bytes have been read.

    Without `skip_bad_files`, bad files are an error that names each of them.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> with TemporaryDirectory() as folder:
    ...     file, other = Path(folder, "day.csv"), Path(folder, "empty.csv")
    ...     np.savetxt(file, [[0, 0.5], [0, -1.5]], "%g", ",", header="group,value", comments="")
    ...     other.touch()
    ...     counting = count_files([file, other], Job(plan), skip_bad_files=True)
    >>> counting.summary(plan).sum(0), [path.name for path in counting.bad]
    (-1.0, ['empty.csv'])
    """
    parts = {path: parts_of(path) for path in paths}
    counting, partly_counted = Counting(len(parts)), _PartlyCounted(parts)
    everything = [part for of_file in parts.values() for part in of_file]
    if sum(part.size for part in everything) >= WORTH_COMPILING:
        job = replace(job, compiled=True)
    for counted in (engine or LocalEngine()).run(job, everything):
        if counted.fault is not None:
            counting.blame(counted.part, counted.fault)
        complete = partly_counted.add(counted)
        if complete is not None and counted.part.path not in counting.faults:
            add_tally(counting.tally, complete)
        if advance is not None:
            advance(counted.part.size)
    if counting.faults and not skip_bad_files:
        faults = list(counting.bad.values())
        raise faults[0] if len(faults) == 1 else BadFiles(list(map(str, faults)), counting.files)
    return counting


def summarise_files(
    paths: Sequence[str | Path],
    plan: Plan,
    *,
    drop_invalid: bool = False,
    engine: Engine | None = None,
    advance: Advance | None = None,
) -> Summary:
    """One summary of files, folders and globs.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "day.csv")
    ...     np.savetxt(file, [[0, 0.5], [0, -1.5]], "%g", ",", header="group,value", comments="")
    ...     summarise_files([folder], plan).sum(0)
    -1.0
    """
    job = Job(plan, drop_invalid)
    return count_files(expand(paths, REPORT_SUFFIXES), job, engine, advance=advance).summary(plan)


class _PartlyCounted:
    """Files of which some parts are counted and others not yet."""

    def __init__(self, parts: dict[Path, list[Part]]) -> None:
        self.parts_left = Counter({path: len(of_file) for path, of_file in parts.items()})
        self.tallies: dict[Path, Tally] = {}

    def add(self, counted: Counted) -> Tally | None:
        """Add a part's counts; return the file's tally once its last part is in, else None."""
        path = counted.part.path
        add_tally(self.tallies.setdefault(path, {}), counted.tally)
        self.parts_left[path] -= 1
        return None if self.parts_left[path] else self.tallies.pop(path)
