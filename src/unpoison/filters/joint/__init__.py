"""The joint filter: one likelihood over all groups, which share one honest histogram."""

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.evidence import hidden_range, nobody_p_value
from unpoison.filters.joint.model import Poison
from unpoison.filters.joint.selection import Choice, choose, share_of
from unpoison.filters.joint.solver import Fit, fit
from unpoison.filters.joint.support import least_poison, score, starts, tidied

__all__ = [
    "Choice",
    "Fit",
    "JointCounts",
    "Poison",
    "choose",
    "fit",
    "hidden_range",
    "least_poison",
    "nobody_p_value",
    "score",
    "share_of",
    "starts",
    "tidied",
]
