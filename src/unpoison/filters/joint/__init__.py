"""The joint filter: one likelihood over all groups, which share one honest histogram."""

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.evidence import hidden_frequency, hidden_range, nobody_p_value
from unpoison.filters.joint.interval import Intervals, bias
from unpoison.filters.joint.model import Poison
from unpoison.filters.joint.search import Search
from unpoison.filters.joint.selection import Choice, choose
from unpoison.filters.joint.solver import Fit, fit

__all__ = [
    "Choice",
    "Fit",
    "Intervals",
    "JointCounts",
    "Poison",
    "Search",
    "bias",
    "choose",
    "fit",
    "hidden_frequency",
    "hidden_range",
    "nobody_p_value",
]
