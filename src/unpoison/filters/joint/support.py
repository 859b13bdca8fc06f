"""Where poison may be: found by a linear program, then grown and pruned by what the counts say."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import ALIKE, OWN, Poison
from unpoison.filters.joint.solver import Fit, fit
from unpoison.types import BoolArray, FloatArray

LEVEL = 0.05
MOST_ROUNDS = 10
NEIGHBOURS = 2


def score(counts: JointCounts, found: Fit) -> float:
    """BIC: the deviance, and ln(users) for every parameter of the poison. Less is better.

    >>> from unpoison import Plan, simulate
    >>> run = simulate(Plan.new(epsilon=0.5, low=0, high=1), np.full(20_000, 0.3))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = fit(counts, Poison.nobody(4, 64))
    >>> score(counts, nobody) == nobody.deviance
    True
    """
    return found.deviance + counts.penalty * found.model.parameters


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
    rows = counts.transitions.reshape(-1, counts.inputs)
    limit = (counts.shares + allowed * noise).ravel()
    found = linprog(-np.ones(counts.inputs), A_ub=rows, b_ub=limit, method="highs")
    if found.x is None:
        return np.zeros(counts.counts.shape, dtype=bool)
    rest = (counts.shares - counts.transitions @ found.x) / noise
    return np.asarray(rest > math.sqrt(counts.penalty))


def starts(counts: JointCounts) -> Iterator[BoolArray]:
    """Places to begin with: what the linear program says, with neighbours, and alike in all groups.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> all(places[:, 56:].all() for places in starts(JointCounts.of(run.summary, range(4))))
    True
    """
    places = least_poison(counts)
    groups = len(places)
    sharpest = int(np.argmax(counts.reports))
    candidates = [
        places,
        np.broadcast_to(2 * places.sum(axis=0) >= groups, places.shape),
        np.broadcast_to(places[sharpest], places.shape),
        _with_neighbours(places),
        np.broadcast_to(_with_neighbours(places).any(axis=0), places.shape),
    ]
    seen = {each.tobytes(): each.copy() for each in candidates if each.any()}
    yield from seen.values()


def _with_neighbours(places: BoolArray) -> BoolArray:
    wide = places.copy()
    for step in range(1, NEIGHBOURS + 1):
        wide[:, step:] |= places[:, :-step]
        wide[:, :-step] |= places[:, step:]
    return wide


def tidied(counts: JointCounts, model: Poison) -> Fit:
    """Places added where counts exceed what is expected, and left out where poison is within noise.

    A change is kept if it lowers the score.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> tidied(counts, Poison.alike(np.ones(64, dtype=bool), 4)).model.columns.tolist() == [
    ...     *range(56, 64)
    ... ]
    True
    """
    best = fit(counts, model)
    for _ in range(MOST_ROUNDS):
        before = score(counts, best)
        best = _pruned(counts, _grown(counts, best))
        if score(counts, best) >= before:
            break
    return best


def _grown(counts: JointCounts, best: Fit) -> Fit:
    """Poison of each group's own may be where residuals are large."""
    for _ in range(MOST_ROUNDS if best.model.kind == OWN else 0):
        more = ~best.model.places & (_residuals(counts, best) > math.sqrt(counts.penalty))
        if not more.any():
            break
        wider = fit(counts, Poison.own(best.model.places | more))
        if score(counts, wider) >= score(counts, best):
            break
        best = wider
    return best


def _pruned(counts: JointCounts, best: Fit) -> Fit:
    """Without the places of little poison: the faintest first."""
    for faint in (1.0, 2.0, math.sqrt(counts.penalty)):
        kept = best.model.places & (_strengths(counts, best) >= faint)
        if kept.any() and not np.array_equal(kept, best.model.places):
            smaller = fit(counts, _model(best.model.kind, kept))
            if score(counts, smaller) < score(counts, best):
                best = smaller
    return best


def _model(kind: str, places: BoolArray) -> Poison:
    return Poison.own(places) if kind == OWN else Poison.alike(columns(places), len(places))


def columns(places: BoolArray) -> BoolArray:
    """The buckets that are a place in some group.

    >>> columns(np.array([[True, False, False], [False, False, True]])).tolist()
    [True, False, True]
    """
    found: BoolArray = np.any(places, axis=0)
    return found


def _residuals(counts: JointCounts, found: Fit) -> FloatArray:
    """By how many standard deviations the counts are above what is expected."""
    noise = np.sqrt(found.expected / counts.reports[:, None])
    above: FloatArray = (counts.shares - found.expected) / noise
    return above


def _strengths(counts: JointCounts, found: Fit) -> FloatArray:
    """Poison in standard deviations of its noise; of shared poison over all groups together."""
    weights = counts.reports[:, None] / found.expected
    if found.model.kind != ALIKE:
        return np.asarray(found.poison * np.sqrt(weights))
    together = np.sqrt((found.poison**2 * weights).sum(axis=0))
    return np.broadcast_to(together, found.poison.shape)
