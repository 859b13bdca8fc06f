"""The worst case of a collection: all tiers together, in natural units."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unpoison.estimate.estimate import RangeAtShare, WorstCase
from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.joint import Interval
from unpoison.filters.worst_case import PossibleRange
from unpoison.plan import Plan
from unpoison.protocols import joint_constants
from unpoison.protocols.assembly import combined_interval
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.types import FloatArray


def worst_case_of(plan: Plan, analyses: Sequence[JointAnalysis], weights: FloatArray) -> WorstCase:
    """The worst case for the share that was asked for, or the default.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=10), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(20_000, 3.0), rng=rng)
    >>> case = worst_case_of(plan, [JointAnalysis(run.summary, range(4))], np.ones(1))
    >>> case.low < 3 < case.high, 0.05 <= case.attackers_at_most < 0.5
    (True, True)
    """
    at_most = analyses[0].options.attackers_at_most
    if at_most is None:
        at_most = max(default_share(analysis) for analysis in analyses)
    least = max(analysis.least_attackers for analysis in analyses)
    ends = _ends(plan, [analysis.possible(at_most) for analysis in analyses], weights)
    if least > at_most or any(low > high for low, high in ends):
        return WorstCase(at_most, None, None, least)
    if plan.categories is None:
        return WorstCase(at_most, *ends[0], least)
    lows, highs = (
        dict(zip(plan.categories, side, strict=True)) for side in zip(*ends, strict=True)
    )
    return WorstCase(at_most, lows, highs, least)


def ranges_by_share(
    plan: Plan, analyses: Sequence[JointAnalysis], weights: FloatArray, mean: float
) -> tuple[RangeAtShare, ...]:
    """The range of the mean for every further share that was asked for; none for categories.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> from unpoison.estimate import FilterOptions
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=10), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(20_000, 3.0), rng=rng)
    >>> options = FilterOptions(worst_case_shares=(0.1, 0.2))
    >>> analyses = [JointAnalysis(run.summary, range(4), options)]
    >>> few, many = ranges_by_share(plan, analyses, np.ones(1), 3.0)
    >>> many.low < few.low < 3 < few.high < many.high
    True
    """
    if plan.categorical:
        return ()
    ranges = []
    for share in analyses[0].options.worst_case_shares:
        tiers = [analysis.possible(share) for analysis in analyses]
        low, high = _ends(plan, tiers, weights)[0]
        if low <= high:
            ranges.append(RangeAtShare(share, low, high, *theoretical_limit(plan, mean, share)))
    return tuple(ranges)


def theoretical_limit(plan: Plan, mean: float, attackers: float) -> Interval:
    """The means that no ε-LDP protocol can exclude if users have values at the ends of the range.

    Reports that look like a mean m on [−1, 1] allow (m ± γ·coth(ε/2))/(1 − γ) (docs/method.md).

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> [round(end, 3) for end in theoretical_limit(plan, mean=0.5, attackers=0.1)]
    [0.38, 0.62]
    """
    low, high = plan.bounds
    centre, half = (low + high) / 2, (high - low) / 2
    observed, hidden = (mean - centre) / half, attackers / math.tanh(plan.epsilon / 2)
    ends = ((observed + sign * hidden) / (1 - attackers) for sign in (-1, 1))
    lowest, highest = (centre + half * min(max(end, -1.0), 1.0) for end in ends)
    return lowest, highest


def default_share(analysis: JointAnalysis) -> float:
    """The most attackers in any group that the fit allows for, and a margin; at most a half.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.3), "point:C", 0.2, rng)
    >>> 0.25 < default_share(JointAnalysis(run.summary, range(4))) < 0.3
    True
    """
    above_average = float(analysis.fit.attacker_shares.max()) - analysis.byzantine_fraction
    most = analysis.fraction_interval()[1] + above_average
    return min(most + joint_constants.MARGIN, MOST_ATTACKERS)


def _ends(
    plan: Plan, tiers: Sequence[Sequence[PossibleRange]], weights: FloatArray
) -> list[Interval]:
    """Both ends of the mean, or of each frequency; tiers are added end by end."""
    ends = [
        combined_interval([possible.ends for possible in of_tiers], weights)
        for of_tiers in zip(*tiers, strict=True)
    ]
    return ends if plan.categorical else [_natural(plan, end) for end in ends]


def _natural(plan: Plan, ends: Interval) -> Interval:
    return plan.natural(ends[0]), plan.natural(ends[1])


def other_explanations(
    plan: Plan, analyses: Sequence[JointAnalysis], weights: FloatArray, interval: Interval | None
) -> Interval | None:
    """The range of means that as many attackers would explain, if it is clearly wider.

    It has no room for noise: a mean in it explains the reports about as well. None if the answer
    is the only one, if nobody was found to attack, and for categories.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=-1, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.normal(0, 0.3, 100_000).clip(-1, 1), "uniform:O,C", 0.2, rng)
    >>> analyses = [JointAnalysis(run.summary, range(4))]
    >>> low, high = other_explanations(plan, analyses, np.ones(1), (-0.05, 0.05))
    >>> high > 0.3
    True
    """
    if interval is None or not any(analysis.byzantine_fraction > 0 for analysis in analyses):
        return None
    shares = [float(analysis.fit.attacker_shares.max()) for analysis in analyses]
    tiers = [
        analysis.possible(min(share, MOST_ATTACKERS))[0].inner
        for analysis, share in zip(analyses, shares, strict=True)
    ]
    low, high = _natural(plan, combined_interval(tiers, weights))
    clearly = high - low > joint_constants.CLEARLY_WIDER * (interval[1] - interval[0])
    return (low, high) if clearly else None


def fewer_explain(analyses: Sequence[JointAnalysis]) -> bool:
    """Whether clearly fewer attackers than the fit's would explain the reports of some tier.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.3), "point:C", 0.2, rng)
    >>> fewer_explain([JointAnalysis(run.summary, range(4))])
    False
    """
    return any(
        analysis.fraction_interval()[0] > analysis.enough_attackers + joint_constants.CLEARLY_FEWER
        for analysis in analyses
    )
