"""One honest histogram behind several groups: groups are random, so they share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unpoison.errors import NotEnoughData
from unpoison.filters.buckets import MIN_REPORTS, Buckets
from unpoison.filters.em.loop import MAX_ITERATIONS, Problem, Solution, maximise, tolerance
from unpoison.filters.em.steps import Free, Smoothed
from unpoison.mechanisms import Mechanism, StackedTransition
from unpoison.types import FloatArray, IntArray

FURTHER = 0.01
"""Categories: EM moves slowly at a small ε, and the paper's τ would stop it near where it began."""


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
    finest = max(present, key=lambda place: mechanisms[place].epsilon)
    sizes = [max(int(reports[p]), MIN_REPORTS) for p in present]
    parts = [Buckets.for_reports(mechanisms[p], n) for p, n in zip(present, sizes, strict=True)]
    inputs = parts[present.index(finest)].outputs
    parts = [replace(part, inputs=inputs) for part in parts]
    counts = [part.count(cell_counts[p]) for part, p in zip(parts, present, strict=True)]
    (solution,) = maximise([_problem(parts, counts)], max_iterations)
    return parts[0].input_edges, solution


def _problem(parts: list[Buckets], counts: list[FloatArray]) -> Problem:
    together = np.concatenate(counts)
    shares = [float(each.sum() / together.sum()) for each in counts]
    transition = StackedTransition([part.transition for part in parts], shares)
    start = np.full(transition.inputs, 1 / transition.inputs)
    stop = tolerance(max(part.mechanism.epsilon for part in parts))
    nowhere = np.zeros(len(together))
    if parts[0].mechanism.categorical:
        return Problem(transition, together, start, nowhere, Free(), stop * FURTHER)
    return Problem(transition, together, start, nowhere, Smoothed(), stop)
