"""Weighted least squares of one line a category: honest frequency times signal, plus poison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.filters.categories.constants import LEAST_EXPECTED, REWEIGHTINGS
from unpoison.filters.categories.support import SupportCounts
from unpoison.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of all categories: the `honest` frequency, the `poison`, and their variances.

    >>> Lines(np.array([0.2]), np.zeros(1), np.array([0.01]), np.zeros(1)).honest.tolist()
    [0.2]
    """

    honest: FloatArray
    poison: FloatArray
    honest_variance: FloatArray
    poison_variance: FloatArray


def through_origin(supports: SupportCounts, offset: FloatArray | float = 0.0) -> Lines:
    """Lines without poison; `offset` is what each group's lift has besides the line.

    >>> one = np.ones(2)
    >>> counts = np.array([[40.0], [60.0]])
    >>> supports = SupportCounts(counts, 100 * one, 0 * one, one, one, 0 * one, 100 * one)
    >>> through_origin(supports).honest.round(3).tolist()
    [0.5]
    """
    lift = supports.lift_above(offset)
    signal = supports.signal[:, None]
    honest, nothing = np.zeros(lift.shape[1]), np.zeros(lift.shape[1])
    surely = honest
    for _ in range(REWEIGHTINGS):
        weight = 1 / variances(supports, surely)
        information = (weight * signal**2).sum(axis=0)
        honest = (weight * signal * lift).sum(axis=0) / information
        surely = _surely(honest, 1 / information)
    return Lines(honest, nothing, 1 / information, nothing)


def with_poison(
    supports: SupportCounts, attacked: BoolArray, offset: FloatArray | float = 0.0
) -> Lines:
    """Lines with poison in the attacked groups.

    >>> one, groups = np.ones(2), np.array([True, True])
    >>> supports = SupportCounts(
    ...     np.array([[60.0], [35.0]]), 100 * one, 0 * one, np.array([1.0, 0.5]), one, 0 * one,
    ...     100 * one)
    >>> lines = with_poison(supports, groups)
    >>> lines.honest.round(3).tolist(), lines.poison.round(3).tolist()
    ([0.5], [0.1])
    """
    lift = supports.lift_above(offset)
    signal, pushed = supports.signal[:, None], (supports.pushed * attacked)[:, None]
    start = through_origin(supports, offset)
    surely, poison = _surely(start.honest, start.honest_variance), start.poison
    for _ in range(REWEIGHTINGS):
        weight = 1 / variances(supports, surely, pushed * np.maximum(poison, 0.0))
        ss, sp, pp = (
            (weight * product).sum(axis=0) for product in (signal**2, signal * pushed, pushed**2)
        )
        right = (weight * signal * lift).sum(axis=0), (weight * pushed * lift).sum(axis=0)
        determinant = ss * pp - sp**2
        honest = (pp * right[0] - sp * right[1]) / determinant
        poison = (ss * right[1] - sp * right[0]) / determinant
        surely = _surely(honest, pp / determinant)
    return Lines(honest, poison, pp / determinant, ss / determinant)


def variances(
    supports: SupportCounts, honest: FloatArray, poison: FloatArray | None = None
) -> FloatArray:
    """The variance of each group's share of supporting reports, if these lines are true.

    `poison` is what attackers add to each category in each group.

    That of the noise, and that of who is in which group: all are asked for everybody's frequency.

    >>> one = np.ones(1)
    >>> supports = SupportCounts(
    ...     np.zeros((1, 1)), 100 * one, 0.5 * one, 0 * one, one, 0 * one, 100 * one)
    >>> variances(supports, np.zeros(1)).tolist()
    [[0.0025]]
    """
    signal = supports.signal[:, None]
    honest = np.clip(honest, 0.0, 1.0)
    share = supports.baseline[:, None] + signal * honest
    if poison is not None:
        share = share + poison
    least = LEAST_EXPECTED / supports.reports[:, None]
    share = np.clip(share, least, 1 - least)
    grouping = signal**2 * honest * (1 - honest) / supports.users[:, None]
    return np.asarray(share * (1 - share) / supports.reports[:, None] + grouping)


def _surely(honest: FloatArray, variance: FloatArray) -> FloatArray:
    """Frequencies for variances: less a standard deviation, so that noise gives no weight.

    A group that happens to have few reports of a rare category would otherwise count more, and the
    average would be too low.
    """
    return np.asarray(np.maximum(honest - np.sqrt(variance), 0.0))
