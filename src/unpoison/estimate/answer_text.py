"""The answer of an estimate in a few words, for lists of collections."""

from __future__ import annotations

from typing import NamedTuple

from unpoison.estimate.estimate import Estimate
from unpoison.estimate.value_format import ValueFormat
from unpoison.plan import Plan


class AnswerText(NamedTuple):
    """The mean or the most frequent category, and its interval, as people read them.

    >>> from unpoison.estimate.estimate import Byzantine
    >>> plan = Plan.new(epsilon=1.0, low=0, high=100, unit="km")
    >>> AnswerText.of(plan, Estimate("joint", 30.12, Byzantine(0.0), interval=(25.0, 36.5)))
    AnswerText(answer='30.1 km', interval='25.0 to 36.5 km')
    """

    answer: str
    interval: str | None

    @classmethod
    def of(cls, plan: Plan, estimate: Estimate) -> AnswerText:
        """The text of an estimate of this plan."""
        if estimate.frequencies is not None:
            share, name = max((share, name) for name, share in estimate.frequencies.items())
            ends = estimate.fit.get("frequency_intervals", {}).get(name)
            between = None if ends is None else f"{100 * ends[0]:.1f} % to {100 * ends[1]:.1f} %"
            return cls(f"{name}, {100 * share:.1f} %", between)
        write = ValueFormat.of(plan, estimate.interval)
        ends = estimate.interval
        return cls(write(estimate.mean), None if ends is None else write.between(ends))
