"""The Estimate: the answer with its evidence, what can be asked for, and methods by name.

Names load their modules when they are first used: `FilterOptions` loads the filters, which a
collector leaves to its worker process.
"""

from typing import TYPE_CHECKING

from unpoison.lazy_names import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "unpoison.estimate.distribution": ["Distribution"],
        "unpoison.estimate.estimate": [
            "Byzantine",
            "Estimate",
            "GroupEstimate",
            "Histogram",
            "Picture",
            "RangeAtShare",
            "TierEstimate",
            "WorstCase",
        ],
        "unpoison.estimate.options": ["FilterOptions"],
        "unpoison.estimate.statistic": ["Statistic"],
    },
)
