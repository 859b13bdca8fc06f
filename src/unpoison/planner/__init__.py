"""The planner: compare budgets, groups and shares by predicted error, before collecting."""

from unpoison.planner.advice import compare, users_for
from unpoison.planner.candidates import Candidate, candidates
from unpoison.planner.comparison import Comparison
from unpoison.planner.detection import detectable_share
from unpoison.planner.expectations import Expectations
from unpoison.planner.prediction import Prediction
from unpoison.planner.reference import Reference, attacks_on
from unpoison.planner.setting import Setting
from unpoison.planner.simulated import Draw, PredictedError, Situation
from unpoison.planner.utility import Utilities, utilities

__all__ = [
    "Candidate",
    "Comparison",
    "Draw",
    "Expectations",
    "PredictedError",
    "Prediction",
    "Reference",
    "Setting",
    "Situation",
    "Utilities",
    "attacks_on",
    "candidates",
    "compare",
    "detectable_share",
    "users_for",
    "utilities",
]
