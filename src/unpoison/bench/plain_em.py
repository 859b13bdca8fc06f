"""EM written plainly: whole arrays, dense matrices, one problem at a time.

This is what the fast code is measured against, and tested equal to. It shares the buckets and the
transition matrix with the package and nothing else: start, E-step, M-steps and stopping rule are
written out here from Alg. 2 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unpoison.filters.buckets import Buckets
from unpoison.types import BoolArray, FloatArray, IntArray

MStep = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Fit:
    """The histograms at which EM stopped, and the likelihood before and after each iteration."""

    honest: FloatArray
    poison: FloatArray
    likelihoods: list[float]
    converged: bool

    @property
    def gamma(self) -> float:
        """The estimated share of attackers, γ̂ = Σ ŷ."""
        return float(sum(self.poison))

    @property
    def iterations(self) -> int:
        """The number of M-steps that were made."""
        return len(self.likelihoods) - 1


def expectation_maximisation(
    matrix: FloatArray,
    counts: FloatArray,
    honest: FloatArray,
    poison: FloatArray,
    m_step: MStep,
    tolerance: float,
    max_iterations: int = 100_000,  # the default of `FilterOptions`
) -> Fit:
    """EM with `M @ x` and `Mᵀ @ w` until |l^t − l^{t+1}| < τ."""
    mixture = matrix @ honest + poison
    likelihoods = [float(counts @ np.log(mixture))]
    for _ in range(max_iterations):
        weight = counts / mixture
        honest_weights = honest * (matrix.T @ weight)
        poison_weights = poison * weight
        honest, poison = m_step(honest_weights, poison_weights)
        mixture = matrix @ honest + poison
        likelihoods.append(float(counts @ np.log(mixture)))
        if abs(likelihoods[-1] - likelihoods[-2]) < tolerance:
            return Fit(honest, poison, likelihoods, True)
    return Fit(honest, poison, likelihoods, False)


def free(honest: FloatArray, poison: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The M-step of Alg. 2."""
    total = honest.sum() + poison.sum()
    return honest / total, poison / total


def imposed(gamma: float) -> MStep:
    """The M-step of Alg. 4; where no poison is left, all is honest."""

    def m_step(honest: FloatArray, poison: FloatArray) -> tuple[FloatArray, FloatArray]:
        if poison.sum() == 0:
            return honest / honest.sum(), poison
        return (1 - gamma) * honest / honest.sum(), gamma * poison / poison.sum()

    return m_step


def smoothed(honest: FloatArray, poison: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The M-step of EMS: (1/4, 1/2, 1/4), with the ends repeated."""
    total = honest.sum()
    last = len(honest) - 1
    smooth = np.zeros(len(honest))
    for k in range(len(honest)):
        left, right = honest[max(k - 1, 0)], honest[min(k + 1, last)]
        smooth[k] = (left / 4 + honest[k] / 2 + right / 4) / total
    return smooth, poison


def bucket_counts(buckets: Buckets, cells: IntArray | FloatArray) -> FloatArray:
    """The counts c_i of output buckets, added up from the cells between their edges."""
    edges = buckets.cell_edges
    return np.array([float(cells[edges[i] : edges[i + 1]].sum()) for i in range(buckets.outputs)])


def poison_range(buckets: Buckets, side: str, initial_mean: float) -> BoolArray:
    """The last (left: first) ⌈d'(C−O')/2C⌉ buckets, with O' in the units of the reports."""
    mechanism = buckets.mechanism
    low, high = mechanism.output_low, mechanism.output_high
    cut = float(mechanism.place(np.array(initial_mean)))
    share = (high - cut) / (high - low) if side == "right" else (cut - low) / (high - low)
    # Rounded first, so that a product just above a whole number does not add a bucket.
    size = math.ceil(round(buckets.outputs * share, 9))
    support = np.zeros(buckets.outputs, dtype=bool)
    for i in range(size):
        support[buckets.outputs - 1 - i if side == "right" else i] = True
    return support


def tolerance(buckets: Buckets) -> float:
    """The threshold of EM's stopping rule, τ = 0.01·e^ε."""
    return 0.01 * math.exp(buckets.mechanism.epsilon)


def fit(
    buckets: Buckets,
    counts: FloatArray,
    support: BoolArray,
    m_step: MStep,
    matrix: FloatArray | None = None,
) -> Fit:
    """Run EM from the histograms of line 1 of Alg. 2."""
    start = 1 / (buckets.inputs + int(support.sum()))
    honest = np.full(buckets.inputs, start)
    poison = np.array([start if allowed else 0.0 for allowed in support])
    dense = buckets.transition.dense() if matrix is None else matrix
    return expectation_maximisation(dense, counts, honest, poison, m_step, tolerance(buckets))


def emf(
    buckets: Buckets, counts: FloatArray, support: BoolArray, matrix: FloatArray | None = None
) -> Fit:
    """Fit by EMF (Alg. 2)."""
    return fit(buckets, counts, support, free, matrix)


def emf_star(
    buckets: Buckets,
    counts: FloatArray,
    support: BoolArray,
    gamma: float,
    matrix: FloatArray | None = None,
) -> Fit:
    """Fit by EMF* (Alg. 4)."""
    return fit(buckets, counts, support, imposed(gamma), matrix)


def concentrated(
    buckets: Buckets, support: BoolArray, gamma: float, poison: FloatArray
) -> BoolArray:
    """The buckets that CEMF* keeps: EMF found at least 0.5 γ̂/(d'/2) in them."""
    threshold = 0.5 * gamma / (buckets.outputs / 2)
    kept = np.array(
        [bool(allowed) and y >= threshold for allowed, y in zip(support, poison, strict=True)]
    )
    return kept if kept.any() else support


def ems(buckets: Buckets, counts: FloatArray) -> Fit:
    """EM with smoothing and no poison."""
    start = np.full(buckets.inputs, 1 / buckets.inputs)
    nowhere = np.zeros(buckets.outputs)
    matrix = buckets.transition.dense()
    return expectation_maximisation(matrix, counts, start, nowhere, smoothed, tolerance(buckets))


def smoothed_mean(buckets: Buckets, counts: FloatArray) -> float:
    """The mean of the histogram that EMS finds."""
    solution = ems(buckets, counts)
    return float(np.average(buckets.input_values, weights=solution.honest))


def ems_by_rows(matrix: FloatArray, counts: FloatArray, iterations: int) -> FloatArray:
    """EMS with the E-step as a loop over the output buckets, each a row of the matrix."""
    honest = np.full(matrix.shape[1], 1 / matrix.shape[1])
    for _ in range(iterations):
        weights = np.zeros(len(honest))
        for row, count in zip(matrix, counts, strict=True):
            weights += row * (count / (row @ honest))
        weights *= honest
        padded = np.concatenate([weights[:1], weights, weights[-1:]])
        honest = (padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4) / weights.sum()
    return honest
