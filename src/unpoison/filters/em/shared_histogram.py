"""EMS over several groups at once: groups are random, so one honest histogram is behind all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unpoison.errors import NotEnoughData
from unpoison.filters.buckets import MIN_REPORTS, Buckets
from unpoison.filters.em.loop import MAX_ITERATIONS, Problem, Solution, maximise, tolerance
from unpoison.filters.em.m_steps import FreePoison, Smoothing
from unpoison.mechanisms import Mechanism, StackedTransition
from unpoison.types import FloatArray, IntArray

CATEGORY_TOLERANCE_FACTOR = 0.01
"""Factor on τ for categories: EM moves slowly at a small ε, and the paper's τ would stop it near
where it began."""


def shared_histogram(
    mechanisms: Sequence[Mechanism],
    cell_counts: FloatArray | IntArray,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[FloatArray, Solution]:
    """The input histogram that explains all groups' counts best: its edges, and the EM run.

    `cell_counts` has a row a group.

    By EMS for numbers, by plain EM for categories, which have no neighbours. There are as many
    input buckets as the group with the largest ε has output buckets, √N_t: with the few that the
    filters use at a small ε, smoothing over neighbours would smooth over all values.

    >>> from unpoison.mechanisms import make
    >>> rr = make("k-rr", 1.0, cells=2)
    >>> edges, solution = shared_histogram([rr], np.array([[600.0, 400.0]]))
    >>> solution.honest.round(2).tolist()
    [0.72, 0.28]
    """
    reports = cell_counts.sum(axis=1)
    if reports.sum() < MIN_REPORTS:
        raise NotEnoughData(
            f"a histogram needs at least {MIN_REPORTS} reports that are trusted; "
            f"received {reports.sum():.0f}"
        )
    present = np.flatnonzero(reports > 0).tolist()
    finest = max(present, key=lambda group: mechanisms[group].epsilon)
    # All groups together have enough reports; a small one gets as few buckets as there may be.
    sizes = [max(int(reports[group]), MIN_REPORTS) for group in present]
    buckets = [
        Buckets.for_reports(mechanisms[group], size)
        for group, size in zip(present, sizes, strict=True)
    ]
    inputs = buckets[present.index(finest)].outputs
    buckets = [replace(of_group, inputs=inputs) for of_group in buckets]
    counts = [
        of_group.count(cell_counts[group]) for of_group, group in zip(buckets, present, strict=True)
    ]
    (solution,) = maximise([_problem(buckets, counts)], max_iterations)
    return buckets[0].input_edges, solution


def _problem(buckets: list[Buckets], counts: list[FloatArray]) -> Problem:
    stacked = np.concatenate(counts)
    shares = [float(of_group.sum() / stacked.sum()) for of_group in counts]
    transition = StackedTransition([of_group.transition for of_group in buckets], shares)
    start = np.full(transition.inputs, 1 / transition.inputs)
    stop = tolerance(max(of_group.mechanism.epsilon for of_group in buckets))
    no_poison = np.zeros(len(stacked))
    if buckets[0].mechanism.categorical:
        stop *= CATEGORY_TOLERANCE_FACTOR
        return Problem(transition, stacked, start, no_poison, FreePoison(), stop)
    return Problem(transition, stacked, start, no_poison, Smoothing(), stop)
