"""Models that were tried, each fitted once, and which of them is better."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import OWN, Poison
from unpoison.filters.joint.solver import Fit, fit
from unpoison.types import FloatArray

FITS = 1e-3
"""The p-value under which a model does not explain the counts."""
Rank = tuple[int, float]


@dataclass(eq=False)
class Search:
    """The fits so far.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> search = Search(JointCounts.of(run.summary, range(4)))
    >>> last, nobody = Poison.alike(np.arange(64) == 63, 4), Poison.nobody(4, 64)
    >>> search.better(search.fit(last), search.fit(nobody)), len(search.fits)
    (True, 2)
    """

    counts: JointCounts
    fits: dict[tuple[str, bytes], Fit] = field(default_factory=dict)

    def fit(self, model: Poison) -> Fit:
        """Fit a model, unless that was done."""
        name = model.kind, model.places.tobytes()
        if name not in self.fits:
            self.fits[name] = fit(self.counts, model)
        return self.fits[name]

    def share(self, found: Fit) -> float:
        """γ̂ over all users."""
        return self.counts.over_users(found.shares)

    def score(self, found: Fit) -> float:
        """BIC: the deviance, and ln(users) for every parameter of the poison. Less is better."""
        return found.deviance + self.counts.penalty * found.model.parameters

    def possible(self, found: Fit) -> bool:
        """Whether a model explains the counts with attackers in the minority."""
        return found.p_value > FITS and self.share(found) < MOST_ATTACKERS

    def rank(self, found: Fit) -> Rank:
        """What comes first is better.

        First come models that fit with attackers in the minority, by their score; then those that
        fit with a majority which acts alike; then minorities that do not fit, by their misfit.
        Poison of each group's own with a majority of attackers explains anything, and so nothing.
        """
        majority = self.share(found) >= MOST_ATTACKERS
        if majority and found.model.kind == OWN:
            return 3, found.deviance - found.degrees
        if found.p_value > FITS:
            return int(majority), self.score(found)
        return 2, found.deviance - found.degrees

    def better(self, one: Fit, other: Fit) -> bool:
        """Whether one model comes before another."""
        return self.rank(one) < self.rank(other)

    @property
    def best(self) -> Fit:
        """The first of all."""
        return min(self.fits.values(), key=self.rank)

    def residuals(self, found: Fit) -> FloatArray:
        """By how many standard deviations the counts are above what is expected."""
        weights = np.sqrt(self.counts.precision(found.expected))
        above: FloatArray = (self.counts.shares - found.expected) * weights
        return above
