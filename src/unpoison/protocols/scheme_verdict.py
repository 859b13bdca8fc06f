"""The verdict of the paper's schemes, in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unpoison.estimate import Byzantine
from unpoison.estimate.wording import compare_frequencies, format_value, list_names
from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.buckets import Buckets
from unpoison.protocols.frequency_analysis import FrequencyAnalysis
from unpoison.protocols.mean_analysis import MeanAnalysis
from unpoison.protocols.scheme_analysis import Analysis
from unpoison.protocols.unfiltered import Trust
from unpoison.summary import Summary

DEVIATIONS = 3.0
SURE = 1e-3
"""The p-value under which groups do not agree, and the odds at which a side is the other one."""


@dataclass(frozen=True)
class _Words:
    """What differs between numbers and categories."""

    answer: str
    noticed: bool
    found: str
    nothing: str
    caveat: str


def verdict(
    method: str, answer: dict[str, Any], byzantine: Byzantine, trusted: Trust, analysis: Analysis
) -> str:
    """What a person should take from the estimate; `answer` is its mean or frequencies.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions, analysis_of
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(1000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = analysis_of(run.summary, [0], FilterOptions())
    >>> verdict("emf", {"mean": 0.9}, Byzantine(0.6, "right"), Trust(0.8, 1.0), analysis)
    '60.0 % of users seem to be attackers. ... do not use the mean 0.9000.'
    """
    share = f"{100 * byzantine.fraction:.1f} %"
    if isinstance(analysis, FrequencyAnalysis):
        words = _of_categories(share, answer["frequencies"], byzantine, trusted, analysis)
    else:
        words = _of_numbers(method, share, answer["mean"], byzantine, trusted, analysis)
    if byzantine.fraction >= MOST_ATTACKERS:
        return (
            f"{share} of users seem to be attackers. No method can tell the honest ones apart "
            f"then: do not use {words.answer}."
        )
    if words.noticed:
        return words.found + words.caveat
    if trusted.p_value < SURE:
        unseen = (
            f"Somebody attacks in a way that {method} does not see: it finds {share} attackers, "
            "but the groups differ by more than noise allows. Do not rely on "
            f"{words.answer}."
        )
        return unseen + words.caveat
    return words.nothing + words.caveat


def _of_numbers(
    method: str, share: str, mean: float, byzantine: Byzantine, trusted: Trust, analysis: Analysis
) -> _Words:
    summary = analysis.summary
    value, plain = format_value(mean, summary.plan), format_value(trusted.mean, summary.plan)
    ends = {"right": "the upper end", "left": "the lower end", "both": "both ends"}
    end = ends.get(byzantine.side, "no end")
    return _Words(
        answer=f"the mean {value}",
        noticed=byzantine.fraction > false_alarm(summary, analysis.probing_group),
        found=(
            f"About {share} of users seem to send made-up values towards {end}; "
            f"without them the mean is {value}, with them it would be {plain}."
        ),
        nothing=(
            f"No clear attack: {method} takes {share} of users for attackers, no more than it does "
            f"when there are none, and leaves them out. Its mean is {value}; if everybody is "
            f"honest, {plain} is the better number."
        ),
        caveat=_other_side(analysis) if isinstance(analysis, MeanAnalysis) else "",
    )


def _of_categories(
    share: str,
    frequencies: dict[str, float],
    byzantine: Byzantine,
    trusted: Trust,
    analysis: FrequencyAnalysis,
) -> _Words:
    names = byzantine.categories or ()
    told = compare_frequencies(names, frequencies, trusted.frequencies or {})
    return _Words(
        answer="the frequencies",
        noticed=bool(names),
        found=(
            f"About {share} of users seem to send made-up reports of {list_names(names)}: {told}."
        ),
        nothing="No attack found: honest users explain the reports by themselves.",
        caveat=(
            " Poison in other categories would explain the reports as well: take the names with "
            "care."
            if analysis.probe.ruled
            else ""
        ),
    )


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


def _other_side(analysis: MeanAnalysis) -> str:
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
