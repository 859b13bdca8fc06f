"""Protocols: which filter on which group, how groups and tiers combine, and the verdict."""

from unpoison.estimate.options import FilterOptions
from unpoison.protocols.analysis import Analysis
from unpoison.protocols.baseline import estimate_baseline
from unpoison.protocols.dap import aggregate, estimate_dap, estimate_dap_together
from unpoison.protocols.frequency_analysis import FrequencyAnalysis
from unpoison.protocols.joint import estimate_joint
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.protocols.mean_analysis import MeanAnalysis
from unpoison.protocols.scheme_analysis import SCHEMES, SchemeAnalysis
from unpoison.protocols.tiers import analysis_of
from unpoison.protocols.weights import combined_variance, group_weights, minimal_variance
from unpoison.registry import load_modules

__all__ = [
    "SCHEMES",
    "Analysis",
    "FilterOptions",
    "FrequencyAnalysis",
    "JointAnalysis",
    "MeanAnalysis",
    "SchemeAnalysis",
    "aggregate",
    "analysis_of",
    "combined_variance",
    "estimate_baseline",
    "estimate_dap",
    "estimate_dap_together",
    "estimate_joint",
    "group_weights",
    "minimal_variance",
]

load_modules(__name__)
