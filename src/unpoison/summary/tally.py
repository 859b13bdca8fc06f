"""Summaries by window of time: how they add up, and loading them from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from pathlib import Path

from unpoison.errors import IncompatibleSummaries
from unpoison.plan import Plan
from unpoison.summary.summary import Summary
from unpoison.summary.windows import Window

Tally = dict[Window | None, Summary]
"""Summaries by window; without windows there is one, of None."""
Advance = Callable[[int], None]
"""Receives how much work has been done since the last call."""


def summary_of(tally: Tally, plan: Plan) -> Summary:
    """The sum of the summaries of all windows.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> summary_of({}, plan) == Summary.empty(plan)
    True
    """
    return reduce(add, tally.values()) if tally else Summary.empty(plan)


def add_tally(total: Tally, more: Tally) -> None:
    """Add summaries window by window.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> total = {None: Summary.empty(plan)}
    >>> add_tally(total, {None: Summary.empty(plan)})
    >>> len(total)
    1
    """
    for window, summary in more.items():
        total[window] = total[window] + summary if window in total else summary


def load_tally(
    paths: Iterable[Path], *, by_window: bool = True, advance: Advance | None = None
) -> Tally:
    """Summary files by window, each file read once; one sum of all if any has no window.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "day.summary")
    ...     Summary.empty(Plan.new(epsilon=1.0, low=0, high=1)).save(path)
    ...     list(load_tally([path]))
    [None]
    """
    tally: Tally = {}
    for path in paths:
        summary = Summary.load(path)
        if not by_window or None in tally or summary.window is None:
            # Sums of files without a window are kept as one: thousands would not fit in memory.
            so_far = [summary_of(tally, summary.plan)] if tally else []
            tally = {None: _added(path, *so_far, summary)}
        else:
            _check_same_plan(path, summary, tally)
            add_tally(tally, {summary.window: summary})
        if advance is not None:
            advance(1)
    return tally


def _added(path: Path, *summaries: Summary) -> Summary:
    try:
        return reduce(add, summaries)
    except IncompatibleSummaries as fault:
        raise IncompatibleSummaries(f"{path}: {fault}") from None


def _check_same_plan(path: Path, summary: Summary, tally: Tally) -> None:
    for other in tally.values():
        if summary.plan != other.plan:
            raise IncompatibleSummaries(f"{path}: was counted by another plan than the others")
        return
