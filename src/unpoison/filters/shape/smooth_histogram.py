"""The honest histogram that is as smooth as the counts allow (docs/method.md, Distributions).

Of all histograms that explain the counts, the most likely one is a few spikes. Here the sum of
squared second differences is added to the deviance, with a weight λ that the counts choose: by the
marginal likelihood, that of the counts when second differences are taken as normal with variance
1/λ. The mean is held fixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from unpoison.filters.joint import Fit, JointCounts
from unpoison.filters.shape import constants
from unpoison.filters.shape.grid import InputGrid
from unpoison.filters.shape.local_model import LocalModel
from unpoison.filters.shape.program import QuadraticProgram
from unpoison.types import FloatArray


class SmoothHistogram(NamedTuple):
    """Shares of users in even buckets, and in narrow ones that stand for single values.

    >>> edges, middle = np.array([0.0, 0.5, 1.0]), np.array([[0.49, 0.51]])
    >>> histogram = SmoothHistogram(edges, np.array([0.4, 0.4]), middle, np.array([0.2]))
    >>> round(float(histogram.fractions.sum() + histogram.atom_fractions.sum()), 6)
    1.0
    """

    edges: FloatArray
    fractions: FloatArray
    atom_edges: FloatArray
    atom_fractions: FloatArray


def smooth_histogram(counts: JointCounts, fit: Fit, mean: float | None = None) -> SmoothHistogram:
    """The smooth histogram of a fit, with a given mean or the fit's own.

    Single values (the ends of the range, and those that the fit added) are a part of it only where
    they pay by BIC: a smooth histogram cannot express that many users share one value.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan, values = Plan.new(epsilon=1.0, low=0, high=1), np.linspace(0, 1, 50_000)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> smooth = smooth_histogram(counts, fit(counts, PoisonModel.nobody(4, 64)))
    >>> bool(smooth.fractions.max() < 1.2 / 64), len(smooth.atom_fractions)
    (True, 0)
    """
    grid = InputGrid(counts)
    mean = fit.mean(counts.values) if mean is None else mean
    low, high = grid.middles[[0, -1]]
    candidates = []
    if grid.lattice or low < mean < high:
        candidates.append(_smoothest(counts, fit, grid, mean, with_atoms=False))
    if not grid.lattice:
        candidates.append(_smoothest(counts, fit, grid, mean, with_atoms=True))
    best = min(candidates, key=lambda candidate: candidate.score(counts.bic_penalty))
    held = np.flatnonzero(best.atoms > constants.EMPTY_SHARE)
    return SmoothHistogram(
        grid.histogram_edges,
        grid.histogram(best.shares),
        grid.atom_edges[held],
        best.atoms[held],
    )


@dataclass(frozen=True, eq=False)
class _Candidate:
    shares: FloatArray
    atoms: FloatArray
    criterion: float

    def score(self, parameter_cost: float) -> float:
        """The criterion, and the cost of a parameter for each single value that users hold."""
        return self.criterion + parameter_cost * int((self.atoms > constants.EMPTY_SHARE).sum())


def _smoothest(
    counts: JointCounts, fit: Fit, grid: InputGrid, mean: float, with_atoms: bool
) -> _Candidate:
    """The histogram with the weight λ of the largest marginal likelihood."""
    transitions, values = grid.transitions, grid.middles
    if with_atoms:
        transitions = np.concatenate([transitions, grid.atom_transitions], axis=2)
        values = np.concatenate([values, grid.atoms])
    program = LocalModel(counts, fit, transitions).program()
    size, inputs, buckets = len(program.slope), len(values), len(grid.middles)
    program = program.with_sum(np.append(values, np.zeros(size - inputs)), mean)
    roughness = _roughness(buckets, size)
    candidates = []
    for weight in constants.SMOOTHING_WEIGHTS:
        penalty = weight * roughness
        point = program.with_penalty(penalty).minimum()
        criterion = _marginal_deviance(program, penalty, point)
        honest = np.maximum(point[:inputs], 0.0)
        candidates.append(_Candidate(honest[:buckets], honest[buckets:], criterion))
    return min(candidates, key=lambda candidate: candidate.criterion)


def _roughness(buckets: int, size: int) -> FloatArray:
    """The matrix of the sum of squared second differences of the density."""
    differences = np.diff(np.eye(buckets), 2, axis=0) * buckets
    roughness = np.zeros((size, size))
    roughness[:buckets, :buckets] = differences.T @ differences
    return roughness


def _marginal_deviance(program: QuadraticProgram, penalty: FloatArray, point: FloatArray) -> float:
    """−2 × the marginal log-likelihood but for a constant; empty buckets stay empty (Laplace)."""
    free = np.flatnonzero(point > constants.EMPTY_SHARE)
    basis = scipy.linalg.null_space(program.sums[:, free])
    if not basis.size:
        return program.with_penalty(penalty).value(point)
    prior = basis.T @ penalty[np.ix_(free, free)] @ basis
    posterior = basis.T @ program.matrix[np.ix_(free, free)] @ basis + prior
    scales = np.linalg.eigvalsh(prior)
    scales = scales[scales > constants.NEGLIGIBLE_EIGENVALUE * max(scales[-1], math.ulp(0.0))]
    log_determinant = float(np.linalg.slogdet(posterior)[1])
    fitted = program.with_penalty(penalty).value(point)
    return fitted + log_determinant - float(np.log(scales).sum())
