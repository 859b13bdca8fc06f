"""DAP with the paper's schemes written plainly, on top of `plain_em`.

Probing, group means, weights and the combination of groups are written out here from Alg. 3 and 5:
this is what the fast code is measured against, and tested equal to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.bench.plain_em import (
    Fit,
    bucket_counts,
    concentrated,
    emf,
    emf_star,
    poison_range,
    smoothed_mean,
)
from unpoison.filters.buckets import Buckets
from unpoison.summary import Summary
from unpoison.types import FloatArray

SIDES = ("left", "right")


@dataclass(frozen=True)
class Answer:
    """A whole DAP estimate; means are normalised."""

    mean: float
    side: str
    gamma: float
    fits: list[Fit]
    group_means: list[float]
    weights: list[float]


def probe(
    buckets: Buckets,
    counts: FloatArray,
    rule: str = "variance",
    matrix: FloatArray | None = None,
) -> tuple[str, Fit]:
    """Probe the poisoned side by Alg. 3, with O' in the middle of the inputs."""
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


def group_mean(summary: Summary, group: int, buckets: Buckets, solution: Fit) -> float:
    """(Σ v' − N_t Σ ŷ_j ν_j)/(N_t − m̂_t), each report and each ν_j decoded; for SW by EMS."""
    mechanism = buckets.mechanism
    reports = int(summary.counts[group].sum())
    if not mechanism.unbiased:
        counts = bucket_counts(buckets, summary.counts[group])
        return smoothed_mean(buckets, np.maximum(counts - reports * solution.poison, 0))
    average = float(mechanism.decode(np.array(summary.sums[group] / 2**32 / reports)))
    removed = 0.0
    for poison, value in zip(solution.poison, buckets.decoded_values, strict=True):
        removed += reports * poison * value
    return float((reports * average - removed) / (reports - reports * solution.gamma))


def weights_of(
    rule: str, honest_reports: list[float], honest_users: list[float], variances: list[float]
) -> list[float]:
    """The groups' weights by Alg. 5, as printed or corrected."""
    if rule == "optimal":
        raw = [n / v for n, v in zip(honest_reports, variances, strict=True)]
    else:
        raw = [1 / (n * v) for n, v in zip(honest_users, variances, strict=True)]
    return [weight / sum(raw) for weight in raw]


def dap(summary: Summary, scheme: str, weights: str = "optimal", rule: str = "variance") -> Answer:
    """Run stages 3 to 5 of DAP for a plan of one tier."""
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
    matrices = [layout.transition.dense() for layout in buckets]
    smallest = min(groups, key=lambda t: plan.groups[t].epsilon)
    side, probed = probe(buckets[smallest], counts[smallest], rule, matrices[smallest])
    fits: dict[str, list[Fit]] = {scheme: [] for scheme in schemes}
    for t in groups:
        support = poison_range(buckets[t], side, middle_of(buckets[t]))
        emf_fit = probed if t == smallest else None
        if set(schemes) & {"emf", "cemf-star"}:
            emf_fit = emf_fit or emf(buckets[t], counts[t], support, matrices[t])
        for scheme in schemes:
            if scheme == "emf" and emf_fit is not None:
                fits[scheme].append(emf_fit)
                continue
            buckets_left = support
            if scheme == "cemf-star" and emf_fit is not None:
                buckets_left = concentrated(buckets[t], support, probed.gamma, emf_fit.poison)
            starred = emf_star(buckets[t], counts[t], buckets_left, probed.gamma, matrices[t])
            fits[scheme].append(starred)
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
