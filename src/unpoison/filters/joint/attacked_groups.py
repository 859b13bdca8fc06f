"""Which groups are attacked: sets of groups that are put aside, and the poison in them.

docs/method.md, Which groups are attacked. If the other groups are honest, they alone tell x.
Poison is then what stands out, in the groups that were put aside, of the largest honest part that
is under their counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.description_length import set_price, support_price
from unpoison.filters.joint.fitting import Fit, fit
from unpoison.filters.joint.initial_support import with_neighbours
from unpoison.filters.joint.model import PoisonModel
from unpoison.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class PutAside:
    """A set of groups that may be attacked, and what the others say if they are honest.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> aside = PutAside.of(counts, np.array([True, False, False, False]))
    >>> aside.excess_support(counts).shape, bool(aside.rest.p_value > 0.01)
    ((4, 64), True)
    """

    attacked: BoolArray
    rest: Fit

    @classmethod
    def of(cls, counts: JointCounts, attacked: BoolArray) -> PutAside:
        """Fit honest users to the groups that are not attacked."""
        rest = only_groups(counts, ~attacked)
        return cls(attacked, fit(rest, PoisonModel.nobody(*rest.counts.shape)))

    def excess(self, counts: JointCounts) -> FloatArray:
        """Standard deviations by which counts are above the largest honest part under them.

        That part is (1 − γ_t) M_t x̂, with the least γ_t for which no bucket is below it by more
        than noise.
        """
        honest, noise = counts.transitions @ self.rest.honest, counts.noise
        kappa = -scipy.special.ndtri(constants.SUPPORT_LEVEL / counts.counts.shape[1])
        shares = ((counts.observed + kappa * noise) / honest).min(axis=1).clip(max=1.0)
        excess: FloatArray = (counts.observed - shares[:, None] * honest) / noise
        return excess

    def excess_support(self, counts: JointCounts) -> BoolArray:
        """Where poison stands out in the attacked groups, by itself or with its neighbours."""
        excess = self.excess(counts)
        if counts.ordered:
            excess = np.maximum(excess, with_neighbours(excess))
        above: BoolArray = excess > math.sqrt(counts.bic_penalty)
        return above & self.attacked[:, None]

    def foreseen_score(self, counts: JointCounts) -> float:
        """The score if poison where it stands out explains the attacked groups, alike or not."""
        support = self.excess_support(counts)
        excess = np.where(support, self.excess(counts), 0.0)
        together = np.sqrt((excess**2).sum(axis=0))[None]
        alike, ordered = np.any(support, axis=0)[None], counts.ordered
        price: float = min(
            support_price(support, excess, ordered) - float(support.sum()),
            support_price(alike, together, ordered) - float(alike.sum()),
        )
        # Explained groups have a deviance of 1 for every bucket, but one, that has no weight.
        explained = int(self.attacked.sum()) * (counts.counts.shape[1] - 1)
        return float(self.rest.deviance + explained + price + set_price(self.attacked))


def only_groups(counts: JointCounts, chosen: BoolArray) -> JointCounts:
    """The counts of some of the groups alone.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), rng=np.random.default_rng(1))
    >>> only_groups(JointCounts.of(run.summary, range(4)), np.arange(4) < 2).groups
    (0, 1)
    """
    numbers = np.flatnonzero(chosen)
    return replace(
        counts,
        groups=tuple(counts.groups[number] for number in numbers),
        buckets=tuple(counts.buckets[number] for number in numbers),
        transitions=counts.transitions[numbers],
        counts=counts.counts[numbers],
        users=counts.users[numbers],
        reports_per_user=counts.reports_per_user[numbers],
    )


def sets_of_groups(groups: int) -> Iterator[BoolArray]:
    """Sets of groups, not all, that may be the attacked ones; large sets first.

    All of them if groups are few; else those of one group or two, and those from either end.

    >>> [np.flatnonzero(attacked).tolist() for attacked in sets_of_groups(3)]
    [[0, 1], [0, 2], [1, 2], [0], [1], [2]]
    """
    few = groups <= constants.FEW_GROUPS
    for size in range(groups - 1, 0, -1):
        for members in combinations(range(groups), size):
            at_an_end = members[-1] == size - 1 or members[0] == groups - size
            if few or size <= 2 or at_an_end:
                yield np.isin(np.arange(groups), members)
