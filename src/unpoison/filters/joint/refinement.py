"""More values that users may have, where 64 buckets are too coarse for what users report.

Many users may hold one and the same value (0, say, or the largest), which no histogram with wide
buckets can express. Counts then fit badly though nobody attacks. A value is added where a user with
it would raise the likelihood: the likelihood's slope, which is at most 1 at values that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import Poison
from unpoison.filters.joint.solver import Fit, fit
from unpoison.types import FloatArray, IntArray

FINE = 1024
ROUNDS = 4
AT_ONCE = 8
WORTH = 1.0
"""The gain in log-likelihood that makes a value worth adding."""
HELD = 1e-6


def refined(counts: JointCounts, models: Sequence[Poison]) -> JointCounts:
    """The counts with values added that one of the models asks for.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=4.0, low=0, high=1), np.full(200_000, 0.37)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(7))
    >>> nobody = Poison.nobody(*counts.counts.shape)
    >>> finer = refined(counts, [nobody])
    >>> fit(counts, nobody).p_value < 1e-3 < fit(finer, nobody).p_value
    True
    >>> finer.inputs > counts.inputs
    True
    """
    if counts.buckets[0].mechanism.categorical:
        return counts
    mechanism = counts.buckets[0].mechanism
    edges = np.linspace(mechanism.input_low, mechanism.input_high, FINE + 1)
    fine, values = counts.transitions_of(edges)
    for model in models:
        counts = _refined(counts, model, fine, values)
    return counts


def _refined(
    counts: JointCounts, model: Poison, fine: FloatArray, values: FloatArray
) -> JointCounts:
    richer, found = counts, fit(counts, model)
    for _ in range(ROUNDS):
        wanted = _wanted(richer, found, fine)
        if not len(wanted):
            break
        finer = richer.with_inputs(fine[:, :, wanted], values[wanted])
        better = fit(finer, model)
        if found.deviance - better.deviance < counts.penalty:
            break
        richer, found = finer, better
    held = np.flatnonzero(found.honest[counts.inputs :] > HELD) + counts.inputs
    if not len(held):
        return counts
    return counts.with_inputs(richer.transitions[:, :, held], richer.values[held])


def _wanted(counts: JointCounts, found: Fit, fine: FloatArray) -> IntArray:
    """The peaks of the likelihood's slope."""
    pull = (1 - found.shares)[:, None] * counts.counts / found.expected
    slope = np.einsum("ti,tik->k", pull, fine)
    present = float(found.honest @ np.einsum("ti,tik->k", pull, counts.transitions))
    gain = slope - present
    padded = np.concatenate([[-np.inf], gain, [-np.inf]])
    peaks = np.flatnonzero((gain >= padded[:-2]) & (gain >= padded[2:]) & (gain > WORTH))
    return peaks[np.argsort(-gain[peaks])][:AT_ONCE]
