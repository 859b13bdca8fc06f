"""The verdict of the paper's schemes: the sentence that a person acts on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unpoison.estimate.finding import ATTACKERS_FOUND, UNCLEAR
from unpoison.estimate.value_format import ValueFormat
from unpoison.estimate.wording import compare_frequencies, list_names
from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.buckets import Buckets
from unpoison.protocols.assembly import Assembly
from unpoison.protocols.frequency_analysis import FrequencyAnalysis
from unpoison.protocols.mean_analysis import MeanAnalysis
from unpoison.protocols.scheme_analysis import SchemeAnalysis
from unpoison.summary import Summary

FALSE_ALARM_DEVIATIONS = 3.0
"""Standard deviations of its count that a poison bucket may soak up when nobody attacks."""
SURE = 1e-3
"""The p-value under which groups do not agree, and the odds at which a side is the other one.

A verdict that accuses is read by people: one false alarm in a thousand collections is tolerable,
one in twenty is not.
"""
ENDS = {"right": "the upper end", "left": "the lower end", "both": "both ends"}


@dataclass(frozen=True)
class _Sentences:
    """The parts of a verdict in which numbers and categories differ."""

    answer: str
    attack_noticed: bool
    attack: str
    no_attack: str
    caveat: str


def verdict(assembly: Assembly, analysis: SchemeAnalysis) -> str:
    """The sentences that tell a person what to make of the estimate; `analysis` is the main tier's.

    >>> import numpy as np
    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> estimate(run.summary, method="emf").verdict
    'About ... % of users seem to send made-up values towards the upper end; ...'
    """
    sentences = _sentences(assembly, analysis)
    if assembly.byzantine.fraction >= MOST_ATTACKERS:
        return (
            f"{_share(assembly)} of users seem to be attackers. No method can tell the honest ones "
            f"apart then: do not use {sentences.answer}."
        )
    if sentences.attack_noticed:
        return sentences.attack + sentences.caveat
    if assembly.unfiltered.p_value < SURE:
        unseen = (
            f"Somebody attacks in a way that {assembly.method} does not see: it finds "
            f"{_share(assembly)} attackers, but the groups differ by more than noise allows. Do "
            f"not rely on {sentences.answer}."
        )
        return unseen + sentences.caveat
    return sentences.no_attack + sentences.caveat


def scheme_finding(assembly: Assembly, analysis: SchemeAnalysis) -> str:
    """Whether attackers were found; a scheme without intervals cannot rule them out.

    >>> import numpy as np
    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> honest = simulate(plan, np.full(5000, 0.3), rng=np.random.default_rng(1))
    >>> estimate(honest.summary, method="emf").byzantine.finding
    'unclear'
    """
    outvoted = assembly.byzantine.fraction >= MOST_ATTACKERS
    return ATTACKERS_FOUND if outvoted or _sentences(assembly, analysis).attack_noticed else UNCLEAR


def _sentences(assembly: Assembly, analysis: SchemeAnalysis) -> _Sentences:
    if isinstance(analysis, FrequencyAnalysis):
        return _of_categories(assembly, analysis)
    return _of_numbers(assembly, analysis)


def _share(assembly: Assembly) -> str:
    return f"{100 * assembly.byzantine.fraction:.1f} %"


def _of_numbers(assembly: Assembly, analysis: SchemeAnalysis) -> _Sentences:
    plan, byzantine = assembly.summary.plan, assembly.byzantine
    write = ValueFormat.of(plan)
    mean, unfiltered = write(assembly.answer["mean"]), write(assembly.unfiltered.mean)
    return _Sentences(
        answer=f"the mean {mean}",
        attack_noticed=byzantine.fraction > false_alarm(assembly.summary, analysis.probing_group),
        attack=(
            f"About {_share(assembly)} of users seem to send made-up values towards "
            f"{ENDS.get(byzantine.side, 'no end')}; without them the mean is {mean}, with them it "
            f"would be {unfiltered}."
        ),
        no_attack=(
            f"No clear attack: {assembly.method} takes {_share(assembly)} of users for attackers, "
            f"no more than it does when there are none, and leaves them out. Its mean is {mean}; "
            f"if everybody is honest, {unfiltered} is the better number."
        ),
        caveat=_other_side(analysis) if isinstance(analysis, MeanAnalysis) else "",
    )


def _of_categories(assembly: Assembly, analysis: FrequencyAnalysis) -> _Sentences:
    names = assembly.byzantine.categories or ()
    compared = compare_frequencies(
        names, assembly.answer["frequencies"], assembly.unfiltered.frequencies or {}
    )
    return _Sentences(
        answer="the frequencies",
        attack_noticed=bool(names),
        attack=(
            f"About {_share(assembly)} of users seem to send made-up reports of "
            f"{list_names(names)}: {compared}."
        ),
        no_attack="No attack found: honest users explain the reports by themselves.",
        caveat=(
            " Poison in other categories would explain the reports as well: take the names with "
            "care."
            if analysis.probe.ruled
            else ""
        ),
    )


def false_alarm(summary: Summary, group: int) -> float:
    """The largest γ̂ that a group may have by chance when nobody attacks.

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
    return FALSE_ALARM_DEVIATIONS / 2 * math.sqrt(buckets.outputs / reports)


def _other_side(analysis: MeanAnalysis) -> str:
    """A warning where the likelihood speaks for the side that the side rule did not choose."""
    chosen = analysis.probe.side
    other = "left" if chosen == "right" else "right"
    likelihoods = {side: run.likelihood for side, run in analysis.probe.solutions.items()}
    if likelihoods[other] - likelihoods[chosen] < -math.log(SURE):
        return ""
    return (
        f" Poison on the {other} would explain the reports better: compare with the side "
        "rule `likelihood`."
    )
