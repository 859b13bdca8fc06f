"""A test that users report alike in all groups: attackers who report in some alone do not."""

from __future__ import annotations

import numpy as np
import scipy

from unpoison.types import FloatArray


def group_sizes_p_value(users: FloatArray, expected: FloatArray) -> float:
    """Chance that as many of all users are in each group, if all groups report alike.

    `expected` are the users of each group that were to report: those who enrolled, or the shares of
    the plan. Users are assigned at random, which tells them nothing of whether to report.

    >>> plan = np.full(4, 0.25)
    >>> group_sizes_p_value(np.full(4, 2500.0), plan)
    1.0
    >>> group_sizes_p_value(np.array([2800.0, 2400.0, 2400.0, 2400.0]), plan) < 1e-6
    True
    """
    if len(users) < 2:
        return 1.0
    means = users.sum() * expected / expected.sum()
    return float(scipy.special.chdtrc(len(users) - 1, np.sum((users - means) ** 2 / means)))
