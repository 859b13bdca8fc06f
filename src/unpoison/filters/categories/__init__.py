"""Frequencies of many categories, and poison among them, category by category.

The joint filter's solver has dense matrices, which a few hundred categories are too many for. Here
every category is a line over the groups: its share of a group's reports grows with the group's
signal by the honest frequency, and is lifted by the poison, which no budget weakens. A line has two
numbers, so the time grows with the number of categories and not with its cube.
"""

from __future__ import annotations

from unpoison.filters.categories.fit import CategoryFit, fit_categories
from unpoison.filters.categories.support import SupportCounts

__all__ = ["CategoryFit", "SupportCounts", "fit_categories"]
