"""Noise over the whole domain: how much would go unnoticed, and the bias of fits with noise.

docs/method.md, Intervals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import chi2

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit, fit
from unpoison.filters.joint.model import PoisonModel
from unpoison.filters.smoothing import smooth
from unpoison.types import FloatArray


def most_unnoticed_noise(counts: JointCounts, nobody: Fit) -> Fit:
    """The largest share of noise that a test at 5 % does not tell from none, as a fit.

    With noise of a known share the counts are those of another mechanism without attackers, one
    that replaces as many reports by a draw from the whole domain. The share is found by halving.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(50_000), rng=rng)
    >>> counts = JointCounts.of(run.summary, range(5))
    >>> nobody = fit(counts, PoisonModel.nobody(*counts.counts.shape))
    >>> noisy = most_unnoticed_noise(counts, nobody)
    >>> bool(0 < noisy.attacker_shares[0] < 0.5), noisy.model.kind
    (True, 'even')
    """
    low, high = 0.0, MOST_ATTACKERS
    most = nobody
    # A share can only be positive, so the test has one side: twice its level of χ².
    noticed_deviance = nobody.deviance + chi2.isf(2 * constants.NOISE_LEVEL, 1)
    for _ in range(constants.NOISE_HALVINGS):
        share = (low + high) / 2
        noisy = fit(counts.with_noise(share), nobody.model)
        if noisy.deviance < noticed_deviance:
            low, most = share, noisy
        else:
            high = share
    shares = np.full(len(counts.reports), low)
    return replace(most, model=PoisonModel.even(*counts.counts.shape), attacker_shares=shares)


def fit_bias(
    counts: JointCounts, noisy: Fit, replicates: int | None = None, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Average error of x̂ and of the γ̂_t of a fit with noise, if the fit is nearly true.

    A histogram cannot be negative, so that which is most likely shrinks to a few values, and takes
    some of the noise for users of its own. Collections are drawn from it with its values spread out
    again, and fitted.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "noise", 0.3, np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> honest_bias, share_bias = fit_bias(counts, fit(counts, PoisonModel.even(4, 64)))
    >>> honest_bias.shape, share_bias.shape
    ((66,), (4,))
    """
    replicates = constants.BIAS_REPLICATES if replicates is None else replicates
    rng, honest = np.random.default_rng(seed), _spread_out(counts, noisy.honest)
    collections = (counts.draw(honest, rng, noisy.poison) for _ in range(replicates))
    refits = [fit(collection, noisy.model) for collection in collections]
    mean_honest = np.mean([refit.honest for refit in refits], axis=0)
    mean_shares = np.mean([refit.attacker_shares for refit in refits], axis=0)
    honest_bias: FloatArray = mean_honest - honest
    share_bias: FloatArray = mean_shares - noisy.attacker_shares
    return honest_bias, share_bias


def _spread_out(counts: JointCounts, honest: FloatArray) -> FloatArray:
    """A histogram without gaps; categories, and values that were added, stay as they are."""
    spread, buckets = honest.copy(), counts.buckets[0]
    if not buckets.mechanism.categorical:
        for _ in range(constants.BIAS_SMOOTHINGS):
            smooth(spread[: buckets.inputs])
    return spread
