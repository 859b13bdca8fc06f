"""Filters: one EM loop, and the steps that make EMF, EMF*, CEMF* and EMS of it."""

from unpoison.filters.em import MAX_ITERATIONS, Problem, Solution, maximise, tolerance
from unpoison.filters.emf import GroupCounts
from unpoison.filters.initial_mean import middle_of_inputs, pessimistic_mean, smoothed_mean
from unpoison.filters.probing import Probe, probe
from unpoison.filters.steps import Free, Imposed, Smoothed

__all__ = [
    "MAX_ITERATIONS",
    "Free",
    "GroupCounts",
    "Imposed",
    "Probe",
    "Problem",
    "Smoothed",
    "Solution",
    "maximise",
    "middle_of_inputs",
    "pessimistic_mean",
    "probe",
    "smoothed_mean",
    "tolerance",
]
