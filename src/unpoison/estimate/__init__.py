"""The Estimate: the answer with its evidence, what can be asked for, and methods by name."""

from unpoison.estimate.distribution import Distribution
from unpoison.estimate.estimate import (
    Byzantine,
    Estimate,
    GroupEstimate,
    Histogram,
    Picture,
    RangeAtShare,
    TierEstimate,
    WorstCase,
)
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic

__all__ = [
    "Byzantine",
    "Distribution",
    "Estimate",
    "FilterOptions",
    "GroupEstimate",
    "Histogram",
    "Picture",
    "RangeAtShare",
    "Statistic",
    "TierEstimate",
    "WorstCase",
]
