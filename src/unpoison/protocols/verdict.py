"""The verdict of the paper's schemes, in a sentence."""

from __future__ import annotations

import math

from unpoison.buckets import Buckets
from unpoison.estimate import Byzantine
from unpoison.protocols.analysis import Analysis
from unpoison.protocols.trust import Trust
from unpoison.summary import Summary

MOST_ATTACKERS = 0.5
DEVIATIONS = 3.0
SURE = 1e-3
"""The p-value under which groups do not agree, and the odds at which a side is the other one."""


def verdict(
    method: str, mean: float, byzantine: Byzantine, trusted: Trust, analysis: Analysis
) -> str:
    """What a person should take from the estimate.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(1000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = Analysis(run.summary, [0], FilterOptions())
    >>> verdict("emf", 0.9, Byzantine(0.6, "right"), Trust(0.8, 1.0), analysis)
    '60.0 % of users seem to be attackers. ... do not use the mean 0.9000.'
    """
    summary = analysis.summary
    share = f"{100 * byzantine.fraction:.1f} %"
    value, plain = readable(mean, summary), readable(trusted.mean, summary)
    ends = {"right": "the upper end", "left": "the lower end", "both": "both ends"}
    if byzantine.fraction >= MOST_ATTACKERS:
        return (
            f"{share} of users seem to be attackers. No method can tell the honest ones apart "
            f"then: do not use the mean {value}."
        )
    if byzantine.fraction > false_alarm(summary, analysis.probing_group):
        found = (
            f"About {share} of users seem to send made-up values towards {ends[byzantine.side]}; "
            f"without them the mean is {value}, with them it would be {plain}."
        )
    elif trusted.p_value < SURE:
        found = (
            f"Somebody attacks in a way that {method} does not see: it finds {share} attackers, "
            "but the groups' averages differ by more than noise allows. Do not rely on the mean "
            f"{value}."
        )
    else:
        found = (
            f"No clear attack: {method} takes {share} of users for attackers, no more than it does "
            f"when there are none, and leaves them out. Its mean is {value}; if everybody is "
            f"honest, {plain} is the better number."
        )
    return found + _other_side(analysis)


def false_alarm(summary: Summary, group: int) -> float:
    """How large γ̂ may get in a group when nobody attacks.

    Each of the d'/2 poison buckets can soak up a few standard deviations √(N_t/d') of its own
    count, so γ̂ reaches up to 3·(d'/2)·√(1/(d'·N_t)).

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> few, many = (simulate(plan, np.full(users, 0.3)).summary for users in (100, 10_000))
    >>> round(false_alarm(few, 0), 3), round(false_alarm(many, 0), 3)
    (0.474, 0.15)
    """
    reports = int(summary.reports[group])
    buckets = Buckets.for_reports(summary.plan.group_mechanisms[group], reports)
    return DEVIATIONS / 2 * math.sqrt(buckets.outputs / reports)


def _other_side(analysis: Analysis) -> str:
    """A warning where the counts speak for the side that was not chosen."""
    chosen = analysis.probe.side
    other = "left" if chosen == "right" else "right"
    likelihoods = {side: each.likelihood for side, each in analysis.probe.solutions.items()}
    if likelihoods[other] - likelihoods[chosen] < -math.log(SURE):
        return ""
    return (
        f" Poison on the {other} would explain the reports better: compare with the side "
        "rule `likelihood`."
    )


def readable(mean: float, summary: Summary) -> str:
    """A number with as many digits as its range deserves.

    >>> from unpoison import Plan
    >>> day = Summary.empty(Plan.new(epsilon=0.25, low=0, high=86_400))
    >>> readable(43_210.98765, day)
    '43211'
    """
    low, high = summary.plan.bounds
    width = high - low
    digits = max(0, 4 - math.floor(math.log10(width)))
    return f"{mean:.{digits}f}"
