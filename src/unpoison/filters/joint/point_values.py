"""Single values in x where 64 buckets are too coarse.

docs/method.md, Values that many users share.

Many users may hold one and the same value, which no histogram of wide buckets can express. Counts
then fit badly though nobody attacks. The most likely honest histogram over all values has few of
them, and these are added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import fit
from unpoison.filters.joint.honest_mixture import most_likely_mixture
from unpoison.filters.joint.model import PoisonModel
from unpoison.types import FloatArray


def with_point_values(counts: JointCounts, models: Sequence[PoisonModel]) -> JointCounts:
    """The counts with the values added that one of the models asks for.

    Categories have none, nor do plans whose values all have an entry of x.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=4.0, low=0, high=1), np.full(200_000, 0.37)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = PoisonModel.nobody(*counts.counts.shape)
    >>> finer = with_point_values(counts, [nobody])
    >>> fit(counts, nobody).p_value < 1e-3 < fit(finer, nobody).p_value
    True
    >>> finer.inputs > counts.inputs
    True
    """
    if not counts.bucket_inputs:
        return counts
    values = counts.extreme_values()
    transitions = counts.transitions_from(values)
    for model in models:
        counts = _with_values_for(counts, model, values, transitions)
    return counts


def _with_values_for(
    counts: JointCounts, model: PoisonModel, values: FloatArray, transitions: FloatArray
) -> JointCounts:
    """Add the values of the best honest histogram while that pays by BIC.

    In rounds, since the poison changes with the values.
    """
    extended, best = counts, fit(counts, model)
    for _ in range(constants.MOST_VALUE_ROUNDS):
        mixture = most_likely_mixture(extended, best, transitions)
        if mixture is None or best.deviance - mixture.deviance < counts.bic_penalty:
            break
        # A value that another model has asked for before would be the same column once more.
        new = ~np.isin(values, counts.values)
        held = np.flatnonzero((mixture.honest > constants.HELD_SHARE) & new)
        extended = counts.with_inputs(transitions[:, :, held], values[held])
        best = fit(extended, model)
    return extended
