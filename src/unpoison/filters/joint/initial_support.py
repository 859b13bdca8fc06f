"""Supports of the poison to start a search from (docs/method.md, Where poison may be)."""

from __future__ import annotations

import math

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.types import BoolArray, FloatArray


def least_poison(counts: JointCounts) -> BoolArray:
    """Support of the least poison that can explain the counts, by a linear program.

    The largest honest part a ≥ 0 that is nowhere above the counts by more than noise maximises Σ a
    subject to M_t a ≤ p_t + κσ_t for all t, with κ such that noise alone breaks any of these bounds
    in 5 % of collections. Poison is where the counts exceed M_t a by more than √ln n standard
    deviations. No side is assumed.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> support = least_poison(JointCounts.of(run.summary, range(4)))
    >>> bool(support[:, 56:].all())
    True
    """
    noise = counts.noise
    kappa = -scipy.special.ndtri(constants.SUPPORT_LEVEL / noise.size)
    bounds = (counts.observed + kappa * noise).ravel()
    objective = -np.ones(counts.inputs)
    solution = scipy.optimize.linprog(
        objective, A_ub=counts.stacked_transitions, b_ub=bounds, method="highs"
    )
    if solution.x is None:
        return np.zeros(counts.counts.shape, dtype=bool)
    excess = (counts.observed - counts.transitions @ solution.x) / noise
    return np.asarray(excess > math.sqrt(counts.bic_penalty))


def initial_supports(counts: JointCounts) -> list[BoolArray]:
    """Supports from the linear program: as it is, widened, and made alike in all groups.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> supports = initial_supports(JointCounts.of(run.summary, range(4)))
    >>> all(support[:, 56:].all() for support in supports)
    True
    """
    support = least_poison(counts)
    wide = widened(support)
    # The group with the most reports has the least noise.
    sharpest = int(np.argmax(counts.reports))
    in_most_groups: BoolArray = 2 * support.sum(axis=0) >= len(support)
    candidates = [support, in_most_groups, support[sharpest], wide, in_any_group(wide)]
    of_all_groups = [np.broadcast_to(candidate, support.shape).copy() for candidate in candidates]
    # By their bytes, so that equal supports are tried once.
    distinct = {candidate.tobytes(): candidate for candidate in of_all_groups if candidate.any()}
    return list(distinct.values())


def one_sided_supports(counts: JointCounts) -> list[BoolArray]:
    """Everything beyond a cut, in all groups, on either side.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(1))
    >>> supports = one_sided_supports(JointCounts.of(run.summary, range(4)))
    >>> [int(support[0].sum()) for support in supports][:3]
    [16, 32, 48]
    """
    groups, outputs = counts.counts.shape
    order = np.arange(outputs)
    parts = constants.ONE_SIDED_CUTS
    cuts = [outputs * cut // parts for cut in range(1, parts)]
    one_sided = [order < cut for cut in cuts] + [order >= cut for cut in cuts]
    return [np.broadcast_to(support, (groups, outputs)).copy() for support in one_sided]


def widened(support: BoolArray, reach: int | None = None) -> BoolArray:
    """A support with `reach` further buckets on either side of each of its own.

    >>> widened(np.array([[False, False, False, True]])).tolist()
    [[False, True, True, True]]
    """
    wide = support.copy()
    for step in range(1, (constants.NEIGHBOURS if reach is None else reach) + 1):
        wide[:, step:] |= support[:, :-step]
        wide[:, :-step] |= support[:, step:]
    return wide


def with_neighbours(deviations: FloatArray) -> FloatArray:
    """Sizes in standard deviations, each of a bucket and those beside it together.

    Broad poison is faint in each bucket, and stands out where several are taken together.

    >>> with_neighbours(np.ones((1, 9))).round(2).tolist()[0][4]
    2.24
    """
    size = 2 * constants.NEIGHBOURS + 1
    mean = scipy.ndimage.uniform_filter1d(deviations, size, axis=1, mode="nearest")
    together: FloatArray = math.sqrt(size) * mean
    return together


def in_any_group(support: BoolArray) -> BoolArray:
    """The buckets that are in the support of at least one group.

    >>> in_any_group(np.array([[True, False, False], [False, False, True]])).tolist()
    [True, False, True]
    """
    buckets: BoolArray = np.any(support, axis=0)
    return buckets
