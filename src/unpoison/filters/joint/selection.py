"""Which model of the poison the data choose, and which others they cannot rule out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import ALIKE, EVEN, NOBODY, OWN, Poison
from unpoison.filters.joint.refinement import refined
from unpoison.filters.joint.search import FITS, Search
from unpoison.filters.joint.solver import Fit
from unpoison.filters.joint.support import (
    columns,
    model_at,
    one_sided,
    starts,
    tidied,
    with_neighbours,
    without_islands,
)
from unpoison.types import BoolArray

CLOSE = 6.0
"""A difference of scores that leaves the worse model a chance of 1 in 20."""
LEVEL = 0.05
POOR = 0.01
MOST_STARTS = 3
REACHES = (1, 2, 4)
"""Up to a sixteenth of the report domain."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The model that was chosen, and others that explain the counts as well.

    `counts` may have more values of users than were asked about. If no model fits, the others are
    all that were tried, but for poison of each group's own with a majority of attackers.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> choice = choose(JointCounts.of(run.summary, range(4)))
    >>> choice.best.model.kind, choice.fits, round(choice.share, 2)
    ('alike', True, 0.3)
    """

    counts: JointCounts
    best: Fit
    nobody: Fit
    even: Fit
    others: tuple[Fit, ...]

    @property
    def share(self) -> float:
        """γ̂ over all users."""
        return self.counts.over_users(self.best.shares)

    @property
    def fits(self) -> bool:
        """Whether the counts could come from the model at all."""
        return self.best.p_value > FITS

    @property
    def fits_poorly(self) -> bool:
        """Whether they could, but hardly."""
        return self.fits and self.best.p_value < POOR

    @property
    def alone(self) -> bool:
        """Whether poison was found in one group, without others to compare it with."""
        return len(self.counts.groups) == 1 and self.share > 0

    @property
    def other_kinds(self) -> tuple[str, ...]:
        """Other kinds of attack that explain the counts as well."""
        kinds = dict.fromkeys(each.model.kind for each in self.others)
        return tuple(kind for kind in kinds if kind != self.best.model.kind)

    @property
    def doubt(self) -> bool:
        """Whether the answer may be off by more than its interval says."""
        return bool(self.other_kinds) or not self.fits or self.fits_poorly or self.alone


def choose(counts: JointCounts) -> Choice:
    """The model with the best score of those that fit the counts.

    Simple explanations are tried first: nobody attacks, or noise over the whole domain, or the same
    poison in all groups. Only if none of these fits may every group have poison of its own.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=rng)
    >>> choose(JointCounts.of(run.summary, range(4))).share
    0.0
    """
    places, nobody = starts(counts), Poison.nobody(*counts.counts.shape)
    search = _simple(counts, places)
    if not search.possible(search.best) or search.best.p_value < LEVEL:
        simple = [nobody, Poison.even(*counts.counts.shape)]
        other = [] if search.best.model.kind in (NOBODY, EVEN) else [search.best.model]
        search = _finer(search, simple + other, places)
    if not search.possible(search.best):
        _freely(search, places)
    if search.best.p_value < LEVEL and search.best.model.kind == OWN:
        search = _finer(search, [search.best.model], places)
        _freely(search, [search.best.model.places, *places])
    best, even = search.best, search.fit(Poison.even(*counts.counts.shape))
    return Choice(search.counts, best, search.fit(nobody), even, _others(search))


def _simple(counts: JointCounts, places: list[BoolArray]) -> Search:
    """Nobody attacks, noise, or the same poison in all groups."""
    search = Search(counts)
    groups, outputs = counts.counts.shape
    search.fit(Poison.nobody(groups, outputs))
    search.fit(Poison.even(groups, outputs))
    for each in [np.ones(outputs, dtype=bool), *map(columns, places)]:
        tidied(search, Poison.alike(each, groups))
    return search


def _finer(search: Search, models: list[Poison], places: list[BoolArray]) -> Search:
    """The same with more values of users, if these models ask for any."""
    finer = refined(search.counts, models)
    if finer is search.counts:
        return search
    again = _simple(finer, places)
    for model in models:
        again.fit(model)
    return again


def _freely(search: Search, places: list[BoolArray]) -> None:
    """Poison of each group's own."""
    for each in _beginnings(search, places):
        tidied(search, Poison.own(each))
    without_islands(search)


def _beginnings(search: Search, places: list[BoolArray]) -> list[BoolArray]:
    """What the linear program says, and the most promising of all other beginnings."""
    rest = places[1:] + one_sided(search.counts)
    rest.sort(key=lambda each: search.rank(search.fit(Poison.own(each))))
    return places[:1] + rest[:MOST_STARTS]


def _others(search: Search) -> tuple[Fit, ...]:
    """What may be true as well as the best."""
    best, found = search.best, list(search.fits.values())
    if best.p_value > FITS:
        close = [each for each in found if each is not best and _plausible(search, each)]
        return *close, *_wider(search, best)
    tried = (each for each in found if search.rank(each) < (3,))
    return tuple(each for each in tried if each is not best)


def _wider(search: Search, best: Fit) -> list[Fit]:
    """The best with more buckets on either side: poison may end within one, or fade away."""
    model, mechanism = best.model, search.counts.buckets[0].mechanism
    if mechanism.categorical or model.kind not in (ALIKE, OWN):
        return []
    places = (with_neighbours(model.places, reach) for reach in REACHES)
    wider = [search.fit(model_at(model.kind, each)) for each in places]
    return [each for each in wider if each is not best and search.possible(each)]


def _plausible(search: Search, each: Fit) -> bool:
    """Whether a model fits, and its score is close; or whether it is significantly better.

    The latter is asked of simpler kinds only: poison of a group's own soaks up noise. So does a
    little poison in the one bucket of all with the largest residual, if nobody attacks and that
    explains the counts.
    """
    best = search.best
    explained = best.model.kind == NOBODY and best.p_value > LEVEL
    chance = explained and each.model.kind != EVEN
    if chance or not search.possible(each):
        return False
    more, gain = each.model.parameters - best.model.parameters, best.deviance - each.deviance
    # A share of noise can only be positive, so its test has one side.
    level = 2 * LEVEL if each.model.kind == EVEN else LEVEL
    better = more > 0 and float(chi2.sf(gain, more)) < level and each.model.kind != OWN
    return better or search.score(each) - search.score(best) < CLOSE
