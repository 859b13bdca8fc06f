"""The paper's filters: one EM loop, and the M-steps that make EMF, EMF*, CEMF* and EMS of it."""

from unpoison.filters.em.category_deviance import support_deviance
from unpoison.filters.em.group_counts import GroupCounts
from unpoison.filters.em.initial_mean import middle_of_inputs, pessimistic_mean, smoothed_mean
from unpoison.filters.em.locating import Located, locate
from unpoison.filters.em.loop import MAX_ITERATIONS, Problem, Solution, maximise, tolerance
from unpoison.filters.em.m_steps import FixedPoison, FreePoison, ImposedFraction, Smoothing
from unpoison.filters.em.probing import Probe, probe, probing
from unpoison.filters.em.shared_histogram import shared_histogram
from unpoison.filters.em.stages import Stages, run_stages

__all__ = [
    "MAX_ITERATIONS",
    "FixedPoison",
    "FreePoison",
    "GroupCounts",
    "ImposedFraction",
    "Located",
    "Probe",
    "Problem",
    "Smoothing",
    "Solution",
    "Stages",
    "locate",
    "maximise",
    "middle_of_inputs",
    "pessimistic_mean",
    "probe",
    "probing",
    "run_stages",
    "shared_histogram",
    "smoothed_mean",
    "support_deviance",
    "tolerance",
]
