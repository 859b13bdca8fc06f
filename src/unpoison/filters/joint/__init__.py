"""The joint filter: one likelihood over all groups, which share one honest histogram."""

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit, fit
from unpoison.filters.joint.intervals import Interval, Intervals
from unpoison.filters.joint.model import PoisonModel
from unpoison.filters.joint.model_search import ModelSearch, outvoted
from unpoison.filters.joint.selection import ModelChoice, choose_model
from unpoison.filters.joint.significance import nobody_p_value, with_agreement

__all__ = [
    "Fit",
    "Interval",
    "Intervals",
    "JointCounts",
    "ModelChoice",
    "ModelSearch",
    "PoisonModel",
    "choose_model",
    "fit",
    "nobody_p_value",
    "outvoted",
    "with_agreement",
]
