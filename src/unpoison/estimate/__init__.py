"""The Estimate: the answer with its evidence, what can be asked for, and methods by name."""

from unpoison.estimate.distribution import Distribution
from unpoison.estimate.estimate import (
    BlindSpot,
    Byzantine,
    Estimate,
    GroupEstimate,
    Histogram,
    Picture,
    TierEstimate,
)
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic

__all__ = [
    "BlindSpot",
    "Byzantine",
    "Distribution",
    "Estimate",
    "FilterOptions",
    "GroupEstimate",
    "Histogram",
    "Picture",
    "Statistic",
    "TierEstimate",
]
