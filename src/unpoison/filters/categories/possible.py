"""What frequencies are possible, whatever a share of each group's users sends."""

from __future__ import annotations

import numpy as np
import scipy

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.categories.constants import OUTSIDE, SHARE_HALVINGS
from unpoison.filters.categories.support import SupportCounts
from unpoison.types import FloatArray


def possible_frequencies(
    supports: SupportCounts, attackers: float
) -> tuple[FloatArray, FloatArray]:
    """The lowest and highest frequency of each category; lowest above highest if none is possible.

    A group's attackers may all support a category, or none of them. Each group bounds a frequency
    by itself, and the bounds of all groups and categories hold together; that frequencies add up
    to 1 is not used.

    >>> one = np.ones(1)
    >>> supports = SupportCounts(
    ...     np.array([[5e8]]), 1e9 * one, 0.25 * one, 0.5 * one, one, 0 * one, 1e9 * one)
    >>> [end.round(2).tolist() for end in possible_frequencies(supports, 0.1)]
    [[0.39], [0.61]]
    """
    share = supports.counts / supports.reports[:, None]
    noise = _noise(supports, share)
    signal, baseline = supports.signal[:, None], supports.baseline[:, None]
    low = ((share - noise - attackers) / (1 - attackers) - baseline) / signal
    high = ((share + noise) / (1 - attackers) - baseline) / signal
    return np.clip(low.max(axis=0), 0.0, None), np.clip(high.min(axis=0), None, 1.0)


def least_attackers(supports: SupportCounts) -> float:
    """The smallest share of attackers in any group with which the reports are possible.

    >>> one = np.ones(2)
    >>> counts = np.array([[5e8], [6e8]])
    >>> supports = SupportCounts(counts, 1e9 * one, 0 * one, one, one, 0 * one, 1e9 * one)
    >>> round(least_attackers(supports), 2)
    0.1
    """
    if _all_possible(supports, 0.0):
        return 0.0
    too_few, enough = 0.0, MOST_ATTACKERS
    for _ in range(SHARE_HALVINGS):
        middle = (too_few + enough) / 2
        if _all_possible(supports, middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _all_possible(supports: SupportCounts, attackers: float) -> bool:
    low, high = possible_frequencies(supports, attackers)
    return bool((low <= high).all())


def _noise(supports: SupportCounts, share: FloatArray) -> FloatArray:
    """How far noise moves a share of reports: with a small chance that it moves any further."""
    reports = supports.reports[:, None]
    signal, users = supports.signal[:, None], supports.users[:, None]
    # Both ends of each.
    deviations = -scipy.special.ndtri(OUTSIDE / (2 * share.size))
    spread = np.clip(share, 1 / reports, 1 - 1 / reports)
    honest = np.clip((share - supports.baseline[:, None]) / signal, 0.0, 1.0)
    grouping = signal**2 * honest * (1 - honest) / users
    return np.asarray(deviations * np.sqrt(spread * (1 - spread) / reports + grouping))
