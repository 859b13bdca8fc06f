"""What can be said of a plan without simulating: attainable errors, and the worst case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unpoison.filters.worst_case import PossibleRanges
from unpoison.planner.candidates import Candidate
from unpoison.planner.expected import ExpectedCollection
from unpoison.planner.reference import SHAPES, Reference, attacks_on
from unpoison.planner.setting import Setting
from unpoison.planner.simulated import Situation

AS_NARROW = 1.1
"""Worst cases within a tenth of the narrowest are as good: it is hardly the plan that makes them
wide, but the share of attackers."""
AS_ACCURATE = 1.1
"""Attainable errors within a tenth of the least are as good: that many fewer reports are worth
more."""
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Expectations:
    """Figures of one plan that follow from expected counts; in natural units, or of frequencies.

    `attainable` has the error in every situation of a filter that is told where poison may be, and
    `quiet_error` is that with nobody attacking, in the worst shape. `worst_case` is the range of
    what is possible with the tolerated share of attackers, from the truth on, in the shape where
    it is widest.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> setting = Setting(20_000, tolerate=0.1)
    >>> figures = Expectations.of(Candidate("equal users", plan), setting)
    >>> 0 < figures.quiet_error < figures.attainable_error < figures.worst_case[1]
    True
    """

    candidate: Candidate
    attainable: dict[Situation, float]
    quiet_error: float
    worst_case: Range

    @classmethod
    def of(cls, candidate: Candidate, setting: Setting) -> Expectations:
        """Compute the expectations of a plan, from reference users of all shapes."""
        plan, share = candidate.plan, setting.tolerate
        attainable, quiet_errors, ranges = {}, [], []
        for shape in SHAPES:
            expected = ExpectedCollection(plan, Reference(shape, setting.users))
            quiet_errors.append(expected.attainable_error())
            ranges.append(worst_case_from_truth(expected, share))
            for name, attack in attacks_on(plan).items():
                attainable[Situation(name, shape)] = expected.attainable_error(attack, share)
        return cls(candidate, attainable, max(quiet_errors), max(ranges, key=_width))

    @property
    def attainable_error(self) -> float:
        """The largest attainable error of all situations."""
        return max(self.attainable.values())

    @property
    def worst_case_width(self) -> float:
        """The width of the range of what is possible."""
        return _width(self.worst_case)


def worst_case_from_truth(expected: ExpectedCollection, attackers: float) -> Range:
    """The distances below and above the truth that are possible, whatever so many attackers send.

    Of frequencies it is that of the category with the widest range. Ends have room for noise, as
    those of an estimate.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=10)
    >>> expected = ExpectedCollection(plan, Reference("uniform", 100_000))
    >>> below, above = worst_case_from_truth(expected, 0.1)
    >>> -5 < below < -0.5 and 0.5 < above < 5
    True
    """
    plan, possible = expected.plan, PossibleRanges(expected.counts())
    frequencies = expected.truth.frequencies
    if frequencies is not None:
        pairs = zip(possible.frequencies(attackers), frequencies.tolist(), strict=True)
        ranges = [
            (possible_range.ends[0] - truth, possible_range.ends[1] - truth)
            for possible_range, truth in pairs
        ]
        return max(ranges, key=_width)
    low, high = possible.mean(attackers).ends
    truth = expected.truth.mean
    return plan.natural_scale * (low - truth), plan.natural_scale * (high - truth)


def best_of_each_budget(all_expectations: Sequence[Expectations]) -> list[Expectations]:
    """One plan for every ε0, by its worst case, then its attainable error, then its reports.

    >>> from unpoison.planner.candidates import candidates
    >>> setting = Setting(20_000, tolerate=0.1)
    >>> plans = candidates(1.0, 0.25, low=0, high=1)
    >>> best = best_of_each_budget([Expectations.of(plan, setting) for plan in plans])
    >>> [figures.candidate.plan.min_epsilon for figures in best]
    [0.5, 0.25]
    """
    narrowest = min(figures.worst_case_width for figures in all_expectations)
    narrow = [
        figures for figures in all_expectations if figures.worst_case_width <= AS_NARROW * narrowest
    ]
    by_budget: dict[float, list[Expectations]] = {}
    for figures in narrow:
        by_budget.setdefault(figures.candidate.plan.min_epsilon, []).append(figures)
    return [_cheapest_accurate(designs) for designs in by_budget.values()]


def _cheapest_accurate(designs: Sequence[Expectations]) -> Expectations:
    limit = AS_ACCURATE * min(figures.attainable_error for figures in designs)
    accurate = [figures for figures in designs if figures.attainable_error <= limit]
    return min(accurate, key=lambda figures: figures.candidate.reports_a_user)


def _width(ends: Range) -> float:
    return ends[1] - ends[0]
