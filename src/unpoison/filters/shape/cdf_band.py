"""95 % intervals of the CDF, whatever the distribution is like (docs/method.md, Distributions).

The share of honest users up to a value is a linear function of the histogram x. Its interval goes
from the least to the largest share of all histograms, smooth or not, whose deviance is within 3.84
of the least (profile likelihood). Nothing is assumed about x but x ≥ 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from unpoison.filters.joint import Fit, JointCounts
from unpoison.filters.joint import constants as joint_constants
from unpoison.filters.joint.model import NOBODY
from unpoison.filters.shape.extremes import Extremes
from unpoison.filters.shape.grid import Band, InputGrid
from unpoison.filters.shape.local_model import LocalModel
from unpoison.system.blas import single_threaded


@single_threaded
def cdf_band(counts: JointCounts, models: Sequence[Fit], error_factor: float = 1.0) -> Band:
    """The lowest and the highest CDF at the edges of a histogram, over all models.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan, values = Plan.new(epsilon=1.0, low=0, high=1), np.linspace(0, 1, 50_000)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> low, high = cdf_band(counts, [fit(counts, PoisonModel.nobody(4, 64))])
    >>> bool(0.3 < low[32] < 0.5 < high[32] < 0.7)
    True
    """
    slack = float(scipy.special.chdtri(1, joint_constants.INTERVAL_LEVEL)) * error_factor**2
    bands = [_band_of_model(counts, model, slack) for model in models]
    low = np.min([band[0] for band in bands], axis=0)
    high = np.max([band[1] for band in bands], axis=0)
    return InputGrid(counts).histogram_band(low, high)


def _band_of_model(counts: JointCounts, model: Fit, slack: float) -> Band:
    grid = InputGrid(counts)
    transitions = np.concatenate([grid.transitions, grid.atom_transitions], axis=2)
    values = np.concatenate([grid.middles, grid.atoms])
    program = LocalModel(counts, model, transitions).program()
    extremes, padding = Extremes(program), np.zeros(len(program.slope) - len(values))
    low, high = np.zeros(len(grid.edges)), np.ones(len(grid.edges))
    for place in range(1, len(grid.middles)):
        below = np.append(values <= grid.edges[place], padding)
        above = np.append(values > grid.edges[place], padding)
        high[place] = min(extremes.largest(below, slack), 1.0)
        low[place] = max(1 - extremes.largest(above, slack), 0.0)
    high[0], low[-1] = 0.0, 1.0
    # A CDF rises, so each edge also bounds those before it, or after it.
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


def widest_of_each_kind(models: Sequence[Fit]) -> list[Fit]:
    """The model with poison in most buckets, of each kind and each set of attacked groups.

    It leaves most open: those with fewer buckets are its special cases, or nearly so.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(500, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> wide, narrow = (fit(counts, PoisonModel.alike(np.arange(12) > k, 4)) for k in (7, 9))
    >>> widest_of_each_kind([narrow, wide]) == [wide]
    True
    """
    widest: dict[tuple[str, bytes, bool], Fit] = {}
    for model in sorted(models, key=lambda model: int(model.model.support.sum())):
        # Without attackers all kinds are the same.
        attacked = model.model.attacked & (model.attacker_shares > 0)
        kind = model.model.kind if attacked.any() else NOBODY
        widest[kind, attacked.tobytes(), model.model.free_shares] = model
    return list(widest.values())
