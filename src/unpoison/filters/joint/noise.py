"""Noise over the whole domain: how much would go unnoticed.

docs/method.md, Intervals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit, fit
from unpoison.filters.joint.model import PoisonModel


def most_unnoticed_noise(counts: JointCounts, nobody: Fit) -> Fit:
    """The largest share of noise that a test at 5 % does not tell from none, as a fit.

    With noise of a known share the counts are those of another mechanism without attackers, one
    that replaces as many reports by a draw from the whole domain. The share is found by halving.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(50_000), rng=rng)
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = fit(counts, PoisonModel.nobody(*counts.counts.shape))
    >>> noisy = most_unnoticed_noise(counts, nobody)
    >>> bool(0 < noisy.attacker_shares[0] < 0.5), noisy.model.kind
    (True, 'even')
    """
    low, high = 0.0, MOST_ATTACKERS
    most = nobody
    # A share can only be positive, so the test has one side: twice its level of χ².
    noticed_deviance = nobody.deviance + scipy.special.chdtri(1, 2 * constants.NOISE_LEVEL)
    for _ in range(constants.NOISE_HALVINGS):
        share = (low + high) / 2
        noisy = fit(counts.with_noise(share), nobody.model)
        if noisy.deviance < noticed_deviance:
            low, most = share, noisy
        else:
            high = share
    shares = np.full(len(counts.reports), low)
    return replace(most, model=PoisonModel.even(*counts.counts.shape), attacker_shares=shares)
