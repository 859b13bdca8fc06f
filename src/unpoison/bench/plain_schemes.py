"""The paper's schemes written plainly: whole arrays, dense matrices, one problem at a time.

This is what the fast code is measured against, and tested equal to. It shares the buckets and the
transition matrix with the package and nothing else: start, E-step, M-steps, stopping rule, probing,
group means, weights and the combination of groups are written out here from Alg. 2 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.filters.buckets import Buckets
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray, IntArray

MStep = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
SIDES = ("left", "right")


def perturb_piecewise(values: FloatArray, epsilon: float, rng: np.random.Generator) -> FloatArray:
    """Alg. 1 as an expression over whole arrays."""
    root = math.exp(epsilon / 2)
    C = (root + 1) / (root - 1)
    left = (C + 1) / 2 * values - (C - 1) / 2
    right = left + C - 1
    within = left + (right - left) * rng.random(len(values))
    around = -C + (C + 1) * rng.random(len(values))
    outside = np.where(around < left, around, around + (right - left))
    inside = rng.random(len(values)) < root / (root + 1)
    return np.where(inside, within, outside)


@dataclass(frozen=True)
class Fit:
    """Where EM stopped."""

    honest: FloatArray
    poison: FloatArray
    likelihoods: list[float]
    converged: bool

    @property
    def gamma(self) -> float:
        """γ̂ = Σ ŷ."""
        return float(sum(self.poison))

    @property
    def iterations(self) -> int:
        """How many M-steps were made."""
        return len(self.likelihoods) - 1


@dataclass(frozen=True)
class Answer:
    """A whole DAP estimate; means are normalised."""

    mean: float
    side: str
    gamma: float
    fits: list[Fit]
    group_means: list[float]
    weights: list[float]


def expectation_maximisation(
    matrix: FloatArray,
    counts: FloatArray,
    honest: FloatArray,
    poison: FloatArray,
    m_step: MStep,
    tolerance: float,
    max_iterations: int = 100_000,
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
    """c_i, added up cell by cell."""
    edges = buckets.cell_edges
    return np.array([float(cells[edges[i] : edges[i + 1]].sum()) for i in range(buckets.outputs)])


def poison_range(buckets: Buckets, side: str, initial_mean: float) -> BoolArray:
    """The last (left: first) ⌈d'(C−O')/2C⌉ buckets, with O' in the units of the reports."""
    mechanism = buckets.mechanism
    low, high = mechanism.output_low, mechanism.output_high
    at = float(mechanism.place(np.array(initial_mean)))
    part = (high - at) / (high - low) if side == "right" else (at - low) / (high - low)
    size = math.ceil(round(buckets.outputs * part, 9))
    support = np.zeros(buckets.outputs, dtype=bool)
    for i in range(size):
        support[buckets.outputs - 1 - i if side == "right" else i] = True
    return support


def tolerance(buckets: Buckets) -> float:
    """τ = 0.01·e^ε."""
    return 0.01 * math.exp(buckets.mechanism.epsilon)


def fit(
    buckets: Buckets,
    counts: FloatArray,
    support: BoolArray,
    m_step: MStep,
    matrix: FloatArray | None = None,
) -> Fit:
    """Line 1 of Alg. 2, then EM."""
    start = 1 / (buckets.inputs + int(support.sum()))
    honest = np.full(buckets.inputs, start)
    poison = np.array([start if here else 0.0 for here in support])
    dense = buckets.transition.dense() if matrix is None else matrix
    return expectation_maximisation(dense, counts, honest, poison, m_step, tolerance(buckets))


def emf(
    buckets: Buckets, counts: FloatArray, support: BoolArray, matrix: FloatArray | None = None
) -> Fit:
    """Alg. 2."""
    return fit(buckets, counts, support, free, matrix)


def emf_star(
    buckets: Buckets,
    counts: FloatArray,
    support: BoolArray,
    gamma: float,
    matrix: FloatArray | None = None,
) -> Fit:
    """Alg. 4."""
    return fit(buckets, counts, support, imposed(gamma), matrix)


def concentrated(
    buckets: Buckets, support: BoolArray, gamma: float, found: FloatArray
) -> BoolArray:
    """The buckets that CEMF* keeps: EMF found at least 0.5 γ̂/(d'/2) in them."""
    threshold = 0.5 * gamma / (buckets.outputs / 2)
    kept = np.array([bool(here) and y >= threshold for here, y in zip(support, found, strict=True)])
    return kept if kept.any() else support


def ems(buckets: Buckets, counts: FloatArray) -> Fit:
    """EM with smoothing and no poison."""
    start = np.full(buckets.inputs, 1 / buckets.inputs)
    nowhere = np.zeros(buckets.outputs)
    matrix = buckets.transition.dense()
    return expectation_maximisation(matrix, counts, start, nowhere, smoothed, tolerance(buckets))


def smoothed_mean(buckets: Buckets, counts: FloatArray) -> float:
    """The mean of the histogram that EMS finds."""
    found = ems(buckets, counts)
    return float(np.average(buckets.input_values, weights=found.honest))


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


def probe(
    buckets: Buckets,
    counts: FloatArray,
    rule: str = "variance",
    matrix: FloatArray | None = None,
) -> tuple[str, Fit]:
    """Alg. 3 with O' in the middle of the inputs."""
    middle = middle_of(buckets)
    fits = {
        side: emf(buckets, counts, poison_range(buckets, side, middle), matrix) for side in SIDES
    }
    if rule == "variance":
        left_wins = np.var(fits["left"].honest) < np.var(fits["right"].honest)
    else:
        left_wins = fits["left"].likelihoods[-1] > fits["right"].likelihoods[-1]
    side = "left" if left_wins else "right"
    return side, fits[side]


def middle_of(buckets: Buckets) -> float:
    """The paper's O': 0 for PM, 1/2 for SW."""
    return (buckets.mechanism.input_low + buckets.mechanism.input_high) / 2


def group_mean(summary: Summary, group: int, buckets: Buckets, found: Fit) -> float:
    """(Σ v' − N_t Σ ŷ_j ν_j)/(N_t − m̂_t), each report and each ν_j decoded; for SW by EMS."""
    mechanism = buckets.mechanism
    reports = int(summary.counts[group].sum())
    if not mechanism.unbiased:
        counts = bucket_counts(buckets, summary.counts[group])
        return smoothed_mean(buckets, np.maximum(counts - reports * found.poison, 0))
    average = float(mechanism.decode(np.array(summary.sums[group] / 2**32 / reports)))
    removed = 0.0
    for poison, value in zip(found.poison, buckets.decoded_values, strict=True):
        removed += reports * poison * value
    return float((reports * average - removed) / (reports - reports * found.gamma))


def weights_of(
    rule: str, honest_reports: list[float], honest_users: list[float], variances: list[float]
) -> list[float]:
    """Alg. 5, as printed or corrected."""
    if rule == "optimal":
        raw = [n / v for n, v in zip(honest_reports, variances, strict=True)]
    else:
        raw = [1 / (n * v) for n, v in zip(honest_users, variances, strict=True)]
    return [each / sum(raw) for each in raw]


def dap(summary: Summary, scheme: str, weights: str = "optimal", rule: str = "variance") -> Answer:
    """Stages 3 to 5 for a plan of one tier."""
    return dap_schemes(summary, [scheme], weights, rule)[scheme]


def dap_schemes(
    summary: Summary, schemes: Sequence[str], weights: str = "optimal", rule: str = "variance"
) -> dict[str, Answer]:
    """Several schemes, which share the matrices, the probing and EMF."""
    plan = summary.plan
    groups = range(len(plan.groups))
    reports = [int(row.sum()) for row in summary.counts]
    buckets = [Buckets.for_reports(plan.group_mechanisms[t], reports[t]) for t in groups]
    counts = [bucket_counts(buckets[t], summary.counts[t]) for t in groups]
    matrices = [each.transition.dense() for each in buckets]
    smallest = min(groups, key=lambda t: plan.groups[t].epsilon)
    side, probed = probe(buckets[smallest], counts[smallest], rule, matrices[smallest])
    fits: dict[str, list[Fit]] = {scheme: [] for scheme in schemes}
    for t in groups:
        support = poison_range(buckets[t], side, middle_of(buckets[t]))
        known = probed if t == smallest else None
        if set(schemes) & {"emf", "cemf-star"}:
            known = known or emf(buckets[t], counts[t], support, matrices[t])
        for scheme in schemes:
            if scheme == "emf" and known is not None:
                fits[scheme].append(known)
                continue
            kept = support
            if scheme == "cemf-star" and known is not None:
                kept = concentrated(buckets[t], support, probed.gamma, known.poison)
            fits[scheme].append(emf_star(buckets[t], counts[t], kept, probed.gamma, matrices[t]))
    return {s: _combined(summary, buckets, fits[s], weights, side, probed) for s in schemes}


def _combined(
    summary: Summary, buckets: list[Buckets], fits: list[Fit], rule: str, side: str, probed: Fit
) -> Answer:
    plan, groups = summary.plan, range(len(fits))
    means = [group_mean(summary, t, buckets[t], fits[t]) for t in groups]
    reports = [int(row.sum()) for row in summary.counts]
    honest_reports = [reports[t] * (1 - fits[t].gamma) for t in groups]
    honest_users = [honest_reports[t] / plan.groups[t].reports for t in groups]
    variances = [plan.group_mechanisms[t].worst_variance for t in groups]
    shares = weights_of(rule, honest_reports, honest_users, variances)
    mean = sum(w * m for w, m in zip(shares, means, strict=True))
    return Answer(mean, side, probed.gamma, fits, means, shares)
