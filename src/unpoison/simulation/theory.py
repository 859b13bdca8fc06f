"""The paper's theory as functions: GBA to BBA (Thm. 1), and what evasion costs (Section V-D)."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray


def reduce_to_biased(poison: Any, mean: float) -> FloatArray:
    """A one-sided attack with the same effect on the mean as `poison` (Thm. 1, constructive).

    Σ(v − O) stays, every value is on one side of O, and none is farther out than before. As in the
    proof, each value of the weaker side is merged with values of the stronger one until the sum is
    on the stronger side; each merger leaves one value.

    >>> reduce_to_biased([-3.0, -1.0, 2.0], mean=0.0).tolist()
    [-1.0, -1.0]
    """
    deviations = np.asarray(poison, dtype=np.float64) - mean
    if not np.isfinite(deviations).all():
        raise InvalidParameter("poison", "must be finite numbers", "NaN or infinity")
    direction = -1.0 if deviations.sum() <= 0 else 1.0
    towards = deviations * direction
    stronger = (-towards[towards >= 0]).tolist()
    heapq.heapify(stronger)
    for value in np.sort(towards[towards < 0]).tolist():
        merged = value
        while merged < 0 and stronger:
            merged -= heapq.heappop(stronger)
        heapq.heappush(stronger, min(-merged, 0.0))
    return mean - direction * np.sort(stronger)[::-1]


def shift_of_mean(poison: Any, mean: float, users: int) -> float:
    """Distance by which poison moves the average of `users` reports, if all others average to O.

    A reduced attack needs fewer attackers; those it sets free are among the others, and so the
    shift is that of the attack it was made from.

    >>> poison, users = [-3.0, -1.0, 2.0], 8
    >>> shift_of_mean(poison, 0.0, users)
    -0.25
    >>> shift_of_mean(reduce_to_biased(poison, 0.0), 0.0, users)
    -0.25
    """
    deviations = np.asarray(poison, dtype=np.float64) - mean
    if not max(len(deviations), 1) <= users:
        rule = "must be at least 1, and as many as there are attackers"
        raise InvalidParameter("users", rule, users)
    return math.fsum(deviations.tolist()) / users


def utility_max(byzantine: float, honest: float, C: float, mean: float) -> float:
    """U_max (Eq. Umax): the shift when every attacker sends C and nothing is removed.

    >>> utility_max(1, 3, C=4.0, mean=0.0)
    1.0
    """
    _check_users(byzantine, honest)
    return (byzantine * C + honest * mean) / (byzantine + honest) - mean


def utility_evasive(
    byzantine: float, honest: float, C: float, mean: float, share: float, initial_mean: float
) -> float:
    """U_eva (Eq. Ueva): the shift when a share a of the poison is spent at O' to hide the side.

    >>> utility_evasive(1, 3, C=4.0, mean=0.0, share=0.5, initial_mean=0.0)
    0.5
    """
    _check_users(byzantine, honest)
    if not 0 <= share <= 1:
        raise InvalidParameter("share", "must be in [0, 1]", share)
    poison = share * initial_mean + (1 - share) * C
    return (byzantine * poison + honest * mean) / (byzantine + honest) - mean


def evasion_cost(
    byzantine: float, honest: float, C: float, share: float, initial_mean: float
) -> float:
    """U_max − U_eva (Eq. Udelta): what evading costs the attackers, m·a·(C − O')/(m + n).

    >>> evasion_cost(1, 3, C=4.0, share=0.5, initial_mean=0.0)
    0.5
    """
    _check_users(byzantine, honest)
    if not 0 <= share <= 1:
        raise InvalidParameter("share", "must be in [0, 1]", share)
    return byzantine * share * (C - initial_mean) / (byzantine + honest)


def _check_users(byzantine: float, honest: float) -> None:
    if byzantine < 0 or honest < 0 or byzantine + honest == 0:
        received = f"{byzantine} and {honest}"
        raise InvalidParameter("byzantine and honest", "must be numbers of users", received)
