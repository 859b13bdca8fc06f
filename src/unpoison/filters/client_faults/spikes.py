"""Single cells with far more reports than their neighbours: ends of ranges that clients clip to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from unpoison.filters.client_faults import constants
from unpoison.mechanisms import Mechanism
from unpoison.summary import Summary
from unpoison.types import FloatArray, IntArray


def spikes(summary: Summary, groups: Sequence[int]) -> list[float]:
    """The reports at which single cells stand out, in the group where most reports do so.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(5000), "point:1.25", 0.2, rng)
    >>> spikes(run.summary, [0])
    [1.25]
    """
    best, most = [], 0.0
    for group in groups:
        counts, mechanism = summary.counts[group], summary.plan.group_mechanisms[group]
        expected = _neighbours(counts)
        standing_out = _stands_out(counts, expected)
        excess = np.where(standing_out, counts - expected, 0.0)
        share = float(excess.sum()) / max(int(counts.sum()), 1)
        if share > most:
            cells = np.argsort(-excess)[: constants.MOST_SPIKES]
            held = cells[excess[cells] > 0]
            best, most = [_report_in(mechanism, int(cell)) for cell in held], share
    return best


def _neighbours(counts: IntArray) -> FloatArray:
    """The average of the cells beside each, without the cell itself."""
    reach = min(constants.SPIKE_NEIGHBOURS, len(counts) - 1)
    sums = np.concatenate([[0], np.cumsum(counts)])
    first = np.maximum(np.arange(len(counts)) - reach, 0)
    last = np.minimum(np.arange(len(counts)) + reach + 1, len(counts))
    # Beyond a clipped range cells are empty: the fuller side is the one to compare with.
    left = (sums[:-1] - sums[first]) / np.maximum(np.arange(len(counts)) - first, 1)
    right = (sums[last] - sums[1:]) / np.maximum(last - np.arange(len(counts)) - 1, 1)
    return np.asarray(np.maximum(left, right))


def _stands_out(counts: IntArray, expected: FloatArray) -> np.ndarray:
    """Whether cells have more reports than any overlap of windows puts there, beyond chance."""
    level = constants.FALSE_ALARMS / len(counts)
    # The average itself is uncertain: one report more among all neighbours.
    likely = constants.CLEAR_SPIKE * (expected + 1 / constants.SPIKE_NEIGHBOURS)
    return np.asarray(scipy.special.pdtrc(counts - 1, likely) < level)


def _report_in(mechanism: Mechanism, cell: int) -> float:
    """The report with the fewest decimals in a cell; the cell's number, where that is the report.

    People clip to 1, not to 1.00013.
    """
    if mechanism.discrete:
        return float(cell)
    low, high = (float(edge) for edge in mechanism.grid()[cell : cell + 2])
    for decimals in range(math.ceil(-math.log10(high - low)) + 1):
        nearest = round((low + high) / 2, decimals)
        if low <= nearest < high:
            # Not −0.
            return nearest + 0.0
    return (low + high) / 2
