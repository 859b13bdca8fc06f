"""Models that were tried, each fitted once, and their ranking (docs/method.md, Which model)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, auto

import numpy as np

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.description_length import (
    place_price,
    set_price,
    support_price,
    weight_price,
)
from unpoison.filters.joint.fitting import Fit, fit
from unpoison.filters.joint.model import ALIKE, EVEN, NOBODY, OWN, RANGE, PoisonModel
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
    fits: dict[tuple[str, bool, bytes, bytes], Fit] = field(default_factory=dict)
    _ranks: dict[int, Rank] = field(default_factory=dict)

    def fit(self, model: PoisonModel) -> Fit:
        """Fit a model, or return its fit from before."""
        shape = b"" if model.shape is None else model.shape.tobytes()
        key = model.kind, model.free_shares, model.support.tobytes(), shape
        if key not in self.fits:
            nobody = self.fit(PoisonModel.nobody(*model.support.shape)) if model.flat else None
            self.fits[key] = fit(self.counts, model, nobody=nobody)
        return self.fits[key]

    def score(self, candidate: Fit) -> float:
        """Deviance, and twice the nats that describe the poison. Less is better.

        A share of attackers costs ln n, as by BIC, but for the first one of weights that say it.
        """
        counts, model = self.counts, candidate.model
        if model.kind == NOBODY:
            return candidate.deviance
        shares = model.attacked_count - 1 if model.free_shares else 0
        price = set_price(model.attacked) + counts.bic_penalty * shares
        if model.kind == EVEN:
            return candidate.deviance + price + counts.bic_penalty
        if model.kind == RANGE:
            place = place_price(model.first_attacked, counts.ordered)
            return candidate.deviance + price + place + weight_price(share_deviation(candidate))
        deviations = poison_in_deviations(counts, candidate)
        # Shared poison has one support and one shape, whatever the number of its groups.
        rows = np.flatnonzero(model.attacked)[:1] if model.shared else slice(None)
        price += support_price(model.support[rows], deviations[rows], counts.ordered)
        return candidate.deviance + price

    def is_possible(self, candidate: Fit) -> bool:
        """Whether a model explains the counts with attackers in the minority."""
        explains = candidate.p_value > constants.LEAST_FIT_P_VALUE
        return explains and not outvoted(self.counts, candidate)

    def rank(self, candidate: Fit) -> Rank:
        """Sort key; the least is the best.

        First come models that fit with attackers in the minority, by score; then those that fit
        with a majority that acts alike, by score; then models that do not fit, by their misfit.
        Last is poison of each group's own with a majority of attackers: it explains anything.
        """
        # Fits are kept as long as the search, so that their ids are theirs.
        if id(candidate) not in self._ranks:
            self._ranks[id(candidate)] = self._rank(candidate)
        return self._ranks[id(candidate)]

    def _rank(self, candidate: Fit) -> Rank:
        majority = outvoted(self.counts, candidate)
        misfit = candidate.deviance - candidate.degrees_of_freedom
        if majority and candidate.model.kind == OWN:
            return Standing.EXPLAINS_ANYTHING, misfit
        if candidate.p_value > constants.LEAST_FIT_P_VALUE:
            standing = Standing.FITS_WITH_MAJORITY if majority else Standing.FITS
            return standing, self.score(candidate)
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


def attacker_share(counts: JointCounts, candidate: Fit) -> float:
    """γ̂: the share of attackers among users of attacked groups.

    Groups are random: as many users of the others would attack, if they were asked there.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> attacker_share(counts, fit(counts, PoisonModel.nobody(4, 64)))
    0.0
    """
    return float(counts.user_weights(candidate.model.attacked) @ candidate.attacker_shares)


def outvoted(counts: JointCounts, candidate: Fit) -> bool:
    """Whether attackers are the majority of all users: nothing can be known then.

    They may be the majority of some groups, since the others tell of honest users.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> outvoted(counts, fit(counts, PoisonModel.nobody(4, 64)))
    False
    """
    everybody = counts.user_weights(np.ones(len(counts.users), dtype=bool))
    return float(everybody @ candidate.attacker_shares) >= MOST_ATTACKERS


def share_deviation(candidate: Fit) -> FloatArray:
    """The largest share of attackers in its standard errors, as an array of one number.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> share_deviation(fit(counts, PoisonModel.nobody(4, 64))).tolist()
    [0.0]
    """
    errors = np.sqrt(np.maximum(np.diag(candidate.share_covariance), 0.0))
    deviations = candidate.attacker_shares / np.maximum(errors, np.finfo(float).tiny)
    return np.array([np.where(errors > 0, deviations, 0.0).max()])


def poison_in_deviations(counts: JointCounts, candidate: Fit) -> FloatArray:
    """Poison in standard deviations of its noise; that of shared poison over all groups.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> poison_in_deviations(counts, fit(counts, PoisonModel.nobody(4, 64))).max()
    np.float64(0.0)
    """
    precision = counts.precision(candidate.expected)
    if candidate.model.kind != ALIKE:
        return np.asarray(candidate.poison * np.sqrt(precision))
    over_groups = np.sqrt((candidate.poison**2 * precision).sum(axis=0))
    return np.broadcast_to(over_groups, candidate.poison.shape)
