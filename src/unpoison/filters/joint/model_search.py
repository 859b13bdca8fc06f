"""Models that were tried, each fitted once, and their ranking (docs/method.md, Which model)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, auto

import numpy as np

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit, fit
from unpoison.filters.joint.model import OWN, PoisonModel
from unpoison.types import FloatArray


class Standing(IntEnum):
    """What a fit is worth, the best first.

    >>> Standing.FITS < Standing.DOES_NOT_FIT
    True
    """

    FITS = auto()
    FITS_WITH_MAJORITY = auto()
    DOES_NOT_FIT = auto()
    EXPLAINS_ANYTHING = auto()


Rank = tuple[Standing, float]


@dataclass(eq=False)
class ModelSearch:
    """The fits so far to one collection's counts, by kind and support of their models.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> search = ModelSearch(JointCounts.of(run.summary, range(4)))
    >>> last, nobody = PoisonModel.alike(np.arange(64) == 63, 4), PoisonModel.nobody(4, 64)
    >>> search.is_better(search.fit(last), search.fit(nobody)), len(search.fits)
    (True, 2)
    """

    counts: JointCounts
    fits: dict[tuple[str, bytes], Fit] = field(default_factory=dict)

    def fit(self, model: PoisonModel) -> Fit:
        """Fit a model, or return its fit from before."""
        key = model.kind, model.support.tobytes()
        if key not in self.fits:
            self.fits[key] = fit(self.counts, model)
        return self.fits[key]

    def attacker_share(self, candidate: Fit) -> float:
        """γ̂ over all users."""
        return self.counts.user_average(candidate.attacker_shares)

    def bic(self, candidate: Fit) -> float:
        """Deviance plus ln n for every parameter of the poison. Less is better."""
        return candidate.deviance + self.counts.bic_penalty * candidate.model.parameter_count

    def is_possible(self, candidate: Fit) -> bool:
        """Whether a model explains the counts with attackers in the minority."""
        explains = candidate.p_value > constants.LEAST_FIT_P_VALUE
        return explains and self.attacker_share(candidate) < MOST_ATTACKERS

    def rank(self, candidate: Fit) -> Rank:
        """Sort key; the least is the best.

        First come models that fit with attackers in the minority, by BIC; then those that fit with
        a majority that acts alike, by BIC; then models that do not fit, by their misfit. Last is
        poison of each group's own with a majority of attackers: it explains anything.
        """
        majority = self.attacker_share(candidate) >= MOST_ATTACKERS
        misfit = candidate.deviance - candidate.degrees_of_freedom
        if majority and candidate.model.kind == OWN:
            return Standing.EXPLAINS_ANYTHING, misfit
        if candidate.p_value > constants.LEAST_FIT_P_VALUE:
            standing = Standing.FITS_WITH_MAJORITY if majority else Standing.FITS
            return standing, self.bic(candidate)
        return Standing.DOES_NOT_FIT, misfit

    def is_better(self, candidate: Fit, other: Fit) -> bool:
        """Whether one fit ranks before another."""
        return self.rank(candidate) < self.rank(other)

    @property
    def best(self) -> Fit:
        """The fit that ranks first."""
        return min(self.fits.values(), key=self.rank)

    def residuals(self, candidate: Fit) -> FloatArray:
        """Standard deviations by which the counts are above what a fit expects."""
        precision = np.sqrt(self.counts.precision(candidate.expected))
        above: FloatArray = (self.counts.observed - candidate.expected) * precision
        return above
