"""The verdict of the paper's schemes, in a sentence."""

from __future__ import annotations

import math

from unpoison.buckets import Buckets
from unpoison.estimate import Byzantine
from unpoison.summary import Summary

MOST_ATTACKERS = 0.5
DEVIATIONS = 3.0


def false_alarm(summary: Summary, group: int) -> float:
    """How large γ̂ may get in a group when nobody attacks.

    Each of the d'/2 poison buckets can soak up a few standard deviations √(N_t/d') of its own
    count, so γ̂ reaches up to 3·(d'/2)·√(1/(d'·N_t)).
    """
    reports = int(summary.reports[group])
    buckets = Buckets.for_reports(summary.plan.group_mechanisms[group], reports)
    return DEVIATIONS / 2 * math.sqrt(buckets.outputs / reports)


def verdict(
    byzantine: Byzantine,
    mean: float,
    unfiltered: float,
    summary: Summary,
    method: str,
    probing_group: int,
) -> str:
    """What a person should take from the estimate."""
    share = f"{100 * byzantine.fraction:.1f} %"
    value, plain = readable(mean, summary), readable(unfiltered, summary)
    ends = {"right": "the upper end", "left": "the lower end", "both": "both ends"}
    if byzantine.fraction >= MOST_ATTACKERS:
        return (
            f"{share} of users seem to be attackers. No method can tell the honest ones apart "
            f"then: do not use the mean {value}."
        )
    if byzantine.fraction <= false_alarm(summary, probing_group):
        return (
            f"No clear attack: {method} takes {share} of users for attackers, no more than it does "
            f"when there are none, and leaves them out. Its mean is {value}; if everybody is "
            f"honest, {plain} is the better number."
        )
    return (
        f"About {share} of users seem to send made-up values towards {ends[byzantine.side]}; "
        f"without them the mean is {value}, with them it would be {plain}."
    )


def readable(mean: float, summary: Summary) -> str:
    """A number with as many digits as its range deserves."""
    low, high = summary.plan.bounds
    width = high - low
    digits = max(0, 4 - math.floor(math.log10(width)))
    return f"{mean:.{digits}f}"
