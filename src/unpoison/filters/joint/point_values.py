"""Single values in x where 64 buckets are too coarse.

docs/method.md, Values that many users share.

Many users may hold one and the same value, which no histogram of wide buckets can express. Counts
then fit badly though nobody attacks. A value is added where moving users to it would raise the
log-likelihood: at a maximum no value that x already has does that, but a value between may.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit, fit
from unpoison.filters.joint.model import PoisonModel
from unpoison.types import FloatArray, IntArray


def with_point_values(counts: JointCounts, models: Sequence[PoisonModel]) -> JointCounts:
    """The counts with the values added that one of the models asks for; categories have none.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=4.0, low=0, high=1), np.full(200_000, 0.37)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(7))
    >>> nobody = PoisonModel.nobody(*counts.counts.shape)
    >>> finer = with_point_values(counts, [nobody])
    >>> fit(counts, nobody).p_value < 1e-3 < fit(finer, nobody).p_value
    True
    >>> finer.inputs > counts.inputs
    True
    """
    mechanism = counts.buckets[0].mechanism
    if mechanism.categorical:
        return counts
    edges = np.linspace(mechanism.input_low, mechanism.input_high, constants.FINE_BUCKETS + 1)
    transitions, values = counts.transitions_between(edges)
    for model in models:
        counts = _with_values_for(counts, model, transitions, values)
    return counts


def _with_values_for(
    counts: JointCounts, model: PoisonModel, transitions: FloatArray, values: FloatArray
) -> JointCounts:
    """Add peaks of the slope in rounds while that pays by BIC; keep the values that users hold."""
    extended, best = counts, fit(counts, model)
    for _ in range(constants.MOST_VALUE_ROUNDS):
        peaks = _slope_peaks(extended, best, transitions)
        if not len(peaks):
            break
        finer = extended.with_inputs(transitions[:, :, peaks], values[peaks])
        finer_fit = fit(finer, model)
        if best.deviance - finer_fit.deviance < counts.bic_penalty:
            break
        extended, best = finer, finer_fit
    added = best.honest[counts.inputs :]
    held = np.flatnonzero(added > constants.HELD_SHARE) + counts.inputs
    if not len(held):
        return counts
    return counts.with_inputs(extended.transitions[:, :, held], extended.values[held])


def _slope_peaks(counts: JointCounts, best: Fit, transitions: FloatArray) -> IntArray:
    """Candidate values at which the slope of the log-likelihood peaks, the steepest first."""
    pull = (1 - best.attacker_shares)[:, None] * counts.counts / best.expected
    slope = np.einsum("ti,tik->k", pull, transitions)
    present = float(best.honest @ np.einsum("ti,tik->k", pull, counts.transitions))
    gain = slope - present
    padded = np.concatenate([[-np.inf], gain, [-np.inf]])
    is_peak = (gain >= padded[:-2]) & (gain >= padded[2:]) & (gain > constants.VALUE_GAIN)
    peaks = np.flatnonzero(is_peak)
    return peaks[np.argsort(-gain[peaks])][: constants.VALUES_AT_ONCE]
