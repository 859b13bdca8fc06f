"""The schemes' analysis of each tier: of numbers or of categories, as the plan has them."""

from __future__ import annotations

from collections.abc import Iterable

from unpoison.errors import NotEnoughData
from unpoison.estimate.options import FilterOptions
from unpoison.protocols.frequency_analysis import FrequencyAnalysis
from unpoison.protocols.mean_analysis import MeanAnalysis
from unpoison.protocols.scheme_analysis import SchemeAnalysis
from unpoison.summary import Summary


def analysis_of(summary: Summary, groups: Iterable[int], options: FilterOptions) -> SchemeAnalysis:
    """The analysis of some groups: of numbers, or of categories.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> type(analysis_of(run.summary, [0], FilterOptions())).__name__
    'MeanAnalysis'
    """
    kind = FrequencyAnalysis if summary.plan.categorical else MeanAnalysis
    return kind(summary, groups, options)


def tier_analyses(summary: Summary, options: FilterOptions) -> list[SchemeAnalysis]:
    """One analysis for each tier that has reports.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1, min_epsilon=0.5, tiers=[{"epsilon": 0.25}])
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> [analysis.groups for analysis in tier_analyses(run.summary, FilterOptions())]
    [[0, 1]]
    """
    present = summary.tiers_with_reports
    if not present:
        raise NotEnoughData("an estimate needs reports; received none")
    return [analysis_of(summary, groups, options) for groups in present]
