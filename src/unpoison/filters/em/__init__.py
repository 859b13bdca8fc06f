"""Filters: one EM loop, and the steps that make EMF, EMF*, CEMF* and EMS of it."""

from unpoison.filters.em.emf import GroupCounts
from unpoison.filters.em.initial_mean import middle_of_inputs, pessimistic_mean, smoothed_mean
from unpoison.filters.em.locating import Located, locate, support_deviance
from unpoison.filters.em.loop import MAX_ITERATIONS, Problem, Solution, maximise, tolerance
from unpoison.filters.em.probing import Probe, probe, probing
from unpoison.filters.em.shared_histogram import shared_histogram
from unpoison.filters.em.stages import Stages, run_stages
from unpoison.filters.em.steps import Free, Given, Imposed, Smoothed

__all__ = [
    "MAX_ITERATIONS",
    "Free",
    "Given",
    "GroupCounts",
    "Imposed",
    "Located",
    "Probe",
    "Problem",
    "Smoothed",
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
