"""The worst case: what honest users may have, whatever attackers of a given share send."""

from unpoison.filters.worst_case.ranges import PossibleRange, PossibleRanges

__all__ = ["PossibleRange", "PossibleRanges"]
