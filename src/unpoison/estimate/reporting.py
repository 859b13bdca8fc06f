"""Whether the users of all groups report alike, given how many of each were to report."""

from __future__ import annotations

import numpy as np
import scipy

from unpoison.types import FloatArray

LEAST_EXPECTED = 5.0
"""Users who should have reported, or not, in every group before the test says anything: with fewer
its p-values are too small (Cochran's rule)."""
UNLIKE = 1e-3
"""The p-value under which groups do not report alike. Campaigns are looked at many times, and a
warning that is wrong once in twenty looks would be ignored."""


def reporting_p_value(reported: FloatArray, enrolled: FloatArray) -> float:
    """Chance of such different shares of reporting users, if users of all groups report alike.

    Groups are drawn at random, and tell a user nothing of whether to report. Attackers who report
    in one group alone, with all the tickets that they got, make it stand out.

    >>> enrolled = np.full(4, 1500.0)
    >>> reporting_p_value(np.array([1500.0, 1033.0, 1103.0, 1087.0]), enrolled) < 1e-9
    True
    >>> reporting_p_value(np.array([1080.0, 1033.0, 1103.0, 1087.0]), enrolled) > 0.01
    True
    >>> reporting_p_value(np.array([1500.0, 1500.0]), np.array([1500.0, 1500.0]))
    1.0
    """
    # Between two reads of a running collector, more may report than were seen to enrol.
    reported = np.minimum(reported, enrolled)
    share = reported.sum() / max(enrolled.sum(), 1.0)
    expected = np.array([enrolled * share, enrolled * (1 - share)])
    if len(enrolled) < 2 or expected.min() < LEAST_EXPECTED:
        return 1.0
    deviance = np.sum((reported - expected[0]) ** 2 / expected[0] / (1 - share))
    return float(scipy.special.chdtrc(len(enrolled) - 1, deviance))
