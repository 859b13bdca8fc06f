"""Summaries by window of time, and how they add up."""

from __future__ import annotations

from functools import reduce
from operator import add

from unpoison.plan import Plan
from unpoison.summary.summary import Summary
from unpoison.summary.windows import Window

Tally = dict[Window | None, Summary]
"""Summaries by window; without windows there is one, of None."""


def summary_of(tally: Tally, plan: Plan) -> Summary:
    """All windows together.

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
