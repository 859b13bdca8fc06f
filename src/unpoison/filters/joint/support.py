"""Where poison may be: found by a linear program, then grown and pruned by what the counts say."""

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage
from scipy.optimize import linprog
from scipy.stats import norm

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import ALIKE, OWN, Poison
from unpoison.filters.joint.search import Search
from unpoison.filters.joint.solver import Fit
from unpoison.types import BoolArray, FloatArray

LEVEL = 0.05
MOST_ROUNDS = 10
NEIGHBOURS = 2
NOTICEABLE = 2.0
CUTS = 8


def least_poison(counts: JointCounts) -> BoolArray:
    """Where poison is if there is as little of it as can explain the counts.

    The largest honest histogram whose expected counts are nowhere above the counts by more than
    noise: all of M_t x ≤ p_t + κσ_t, with κ such that noise alone breaks any of these in 5 % of
    collections. What is left above it by more than ln(users) allows is poison. No side is assumed.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> places = least_poison(JointCounts.of(run.summary, range(4)))
    >>> bool(places[:, 56:].all())
    True
    """
    noise = np.sqrt(np.maximum(counts.shares, 1 / counts.reports[:, None]))
    noise /= np.sqrt(counts.reports)[:, None]
    allowed = norm.isf(LEVEL / noise.size)
    limit = (counts.shares + allowed * noise).ravel()
    found = linprog(-np.ones(counts.inputs), A_ub=counts.rows, b_ub=limit, method="highs")
    if found.x is None:
        return np.zeros(counts.counts.shape, dtype=bool)
    rest = (counts.shares - counts.transitions @ found.x) / noise
    return np.asarray(rest > math.sqrt(counts.penalty))


def starts(counts: JointCounts) -> list[BoolArray]:
    """Places to begin with: what the linear program says, with neighbours, and alike in all groups.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> all(places[:, 56:].all() for places in starts(JointCounts.of(run.summary, range(4))))
    True
    """
    places = least_poison(counts)
    wide = with_neighbours(places)
    sharpest = int(np.argmax(counts.reports))
    in_most: BoolArray = 2 * places.sum(axis=0) >= len(places)
    candidates = [places, in_most, places[sharpest], wide, columns(wide)]
    spread = [np.broadcast_to(each, places.shape).copy() for each in candidates]
    return list({each.tobytes(): each for each in spread if each.any()}.values())


def one_sided(counts: JointCounts) -> list[BoolArray]:
    """Everything beyond a cut, in all groups, on either side.

    >>> from unpoison import Plan, simulate
    >>> run = simulate(Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3))
    >>> [int(each[0].sum()) for each in one_sided(JointCounts.of(run.summary, range(4)))][:3]
    [8, 16, 24]
    """
    groups, outputs = counts.counts.shape
    order = np.arange(outputs)
    cuts = [outputs * cut // CUTS for cut in range(1, CUTS)]
    sides = [order < cut for cut in cuts] + [order >= cut for cut in cuts]
    return [np.broadcast_to(side, (groups, outputs)).copy() for side in sides]


def with_neighbours(places: BoolArray, reach: int = NEIGHBOURS) -> BoolArray:
    """Places, and some buckets on either side of each.

    >>> with_neighbours(np.array([[False, False, False, True]])).tolist()
    [[False, True, True, True]]
    """
    wide = places.copy()
    for step in range(1, reach + 1):
        wide[:, step:] |= places[:, :-step]
        wide[:, :-step] |= places[:, step:]
    return wide


def islands(places: BoolArray) -> list[BoolArray]:
    """Places that lie apart from others, in their own group and in the next ones.

    >>> places = np.zeros((2, 9), dtype=bool)
    >>> places[0, :2] = places[1, 1] = places[0, 8] = True
    >>> [int(each.sum()) for each in islands(places)]
    [3, 1]
    """
    labels, number = ndimage.label(with_neighbours(places), structure=np.ones((3, 3)))
    return [places & (labels == label) for label in range(1, number + 1)]


def columns(places: BoolArray) -> BoolArray:
    """The buckets that are a place in some group.

    >>> columns(np.array([[True, False, False], [False, False, True]])).tolist()
    [True, False, True]
    """
    found: BoolArray = np.any(places, axis=0)
    return found


def tidied(search: Search, model: Poison) -> Fit:
    """Places added where counts exceed what is expected, and left out where poison is within noise.

    A change is kept if it makes the model better.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> search = Search(JointCounts.of(run.summary, range(4)))
    >>> found = tidied(search, Poison.alike(np.ones(64, dtype=bool), 4))
    >>> found.model.columns.tolist() == [*range(56, 64)]
    True
    """
    best = search.fit(model)
    for _ in range(MOST_ROUNDS):
        changed = _pruned(search, _grown(search, best))
        if changed is best:
            break
        best = changed
    return best


def without_islands(search: Search) -> None:
    """Try the best model without each of its islands.

    Poison that was wrongly blamed on one island hides that which is missing elsewhere, and no
    change of single places can tell: both have to go at once.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> search = Search(JointCounts.of(run.summary, range(4)))
    >>> places = np.zeros((4, 64), dtype=bool)
    >>> places[:, 63], places[0, :8] = True, True
    >>> without_islands(search) if search.fit(Poison.own(places)) else None
    >>> bool(search.best.model.places[:, :8].any())
    False
    """
    for _ in range(MOST_ROUNDS):
        best = search.best
        parts = islands(best.model.places) if best.model.kind == OWN else []
        for part in parts if len(parts) > 1 else []:
            tidied(search, Poison.own(best.model.places & ~part))
        if search.best is best:
            break


def _grown(search: Search, best: Fit) -> Fit:
    """Poison of each group's own may be where residuals are large.

    Where the model does not fit yet, smaller ones next to poison, or where other groups have some,
    count too.
    """
    for _ in range(MOST_ROUNDS if best.model.kind == OWN else 0):
        places, above = best.model.places, search.residuals(best)
        more = above > math.sqrt(search.counts.penalty)
        if not search.possible(best):
            more |= (with_neighbours(places) | columns(places)) & (above > NOTICEABLE)
        wider = search.fit(Poison.own(places | more))
        if not search.better(wider, best):
            break
        best = wider
    return best


def _pruned(search: Search, best: Fit) -> Fit:
    """Without the places of little poison: the faintest first."""
    for faint in (1.0, 2.0, math.sqrt(search.counts.penalty)):
        kept = best.model.places & (_strengths(search.counts, best) >= faint)
        if kept.any():
            smaller = search.fit(model_at(best.model.kind, kept))
            best = smaller if search.better(smaller, best) else best
    return best


def model_at(kind: str, places: BoolArray) -> Poison:
    """Poison at these places, of each group's own or the same in all.

    >>> model_at("alike", np.array([[True, False], [False, False]])).places.tolist()
    [[True, False], [True, False]]
    """
    return Poison.own(places) if kind == OWN else Poison.alike(columns(places), len(places))


def _strengths(counts: JointCounts, found: Fit) -> FloatArray:
    """Poison in standard deviations of its noise; of shared poison over all groups together."""
    weights = counts.precision(found.expected)
    if found.model.kind != ALIKE:
        return np.asarray(found.poison * np.sqrt(weights))
    together = np.sqrt((found.poison**2 * weights).sum(axis=0))
    return np.broadcast_to(together, found.poison.shape)
