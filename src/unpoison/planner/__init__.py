"""The planner: compare budgets, groups and shares by predicted error, before collecting."""

from unpoison.planner.advice import Comparison, compare, users_for
from unpoison.planner.candidates import Candidate, candidates
from unpoison.planner.detection import detectable_share
from unpoison.planner.prediction import Prediction, Setting, predict
from unpoison.planner.reference import Reference, attacks_on
from unpoison.planner.utility import Utilities, utilities

__all__ = [
    "Candidate",
    "Comparison",
    "Prediction",
    "Reference",
    "Setting",
    "Utilities",
    "attacks_on",
    "candidates",
    "compare",
    "detectable_share",
    "predict",
    "users_for",
    "utilities",
]
