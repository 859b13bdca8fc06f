"""Search for poison in ranges of buckets, by score tests (docs/method.md, Faint poison)."""

from __future__ import annotations

import numpy as np

from unpoison.filters.joint import constants
from unpoison.filters.joint.description_length import place_prices, set_price
from unpoison.filters.joint.faint_poison import FaintPoison
from unpoison.filters.joint.fitting import Fit
from unpoison.filters.joint.model import NOBODY, OWN, PoisonModel
from unpoison.filters.joint.model_search import ModelSearch
from unpoison.filters.joint.poison_ranges import fine_ranges, range_shapes
from unpoison.filters.joint.support_search import refine_support
from unpoison.types import FloatArray


def search_ranges(search: ModelSearch) -> None:
    """Try evenly spread poison in the ranges and sets of groups that score tests point to.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:C/2,C", 0.03, np.random.default_rng(1))
    >>> search = ModelSearch(JointCounts.of(run.summary, range(4)))
    >>> search_ranges(search)
    >>> search.best.model.kind, round(float(search.best.attacker_shares[0]), 2)
    ('range', 0.03)
    """
    counts = search.counts
    nobody = search.fit(PoisonModel.nobody(*counts.counts.shape))
    if not counts.ordered:
        return
    coarse = FaintPoison.besides(nobody)
    promising = foreseen_gains(coarse).min(axis=1).argsort()[: constants.MOST_ATTACKED_SETS]
    ranges = fine_ranges(counts.counts.shape[1])
    faint = FaintPoison.besides(nobody, coarse.sets[promising], ranges)
    gains = foreseen_gains(faint)
    for number, attacked in enumerate(faint.sets):
        likeliest = int(gains[number].argmin())
        if gains[number, likeliest] < constants.CLOSE_SCORE:
            shape = faint.shapes[likeliest]
            search.fit(PoisonModel.on_range(faint.ranges[likeliest], shape, attacked))
    move_range(search)


def move_range(search: ModelSearch) -> None:
    """Move the ends of the best range while that is better; ranges beside it are tried as well.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> from unpoison.filters.joint.poison_ranges import End, PoisonRange
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:C/2,C", 0.2, np.random.default_rng(1))
    >>> search = ModelSearch(JointCounts.of(run.summary, range(4)))
    >>> start = PoisonRange(End(0.7), End(1.0))
    >>> shape = range_shapes([start], search.counts)[0]
    >>> of_start = search.fit(PoisonModel.on_range(start, shape, np.ones(4, dtype=bool)))
    >>> move_range(search)
    >>> round(search.best.model.reports_range.low.fraction, 2)
    0.75
    """
    outputs = search.counts.counts.shape[1]
    distances = [reach / outputs for reach in constants.WIDENINGS]
    for _ in range(constants.MOST_SUPPORT_ROUNDS):
        best = search.best
        if best.model.reports_range is None:
            return
        ranges = best.model.reports_range.moved(distances)
        for chosen, shape in zip(ranges, range_shapes(ranges, search.counts), strict=True):
            if shape.any():
                search.fit(PoisonModel.on_range(chosen, shape, best.model.attacked))
        if search.best is best:
            return


def search_missing_poison(search: ModelSearch) -> None:
    """Add ranges to the support of the best model while score tests say that poison is missing.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, values = Plan.new(epsilon=1.0, low=0, high=1), np.full(200_000, 0.3)
    >>> run = simulate(plan, values, "uniform:C/2,C", 0.2, np.random.default_rng(1))
    >>> search = ModelSearch(JointCounts.of(run.summary, range(4)))
    >>> last_eighth = search.fit(PoisonModel.alike(np.arange(64) >= 56, 4))
    >>> search_missing_poison(search)
    >>> bool(search.best.model.support[:, 48:].all())
    True
    """
    for _ in range(constants.MOST_MISSING_RANGES):
        best = search.best
        if best.model.kind == NOBODY or not search.counts.ordered:
            return
        faint = FaintPoison.besides(best)
        gains = foreseen_gains(faint)
        chosen = np.unravel_index(gains.argmin(), gains.shape)
        if gains[chosen] >= 0:
            return
        refine_support(search, _extended(best, faint, (int(chosen[0]), int(chosen[1]))))
        if search.best is best:
            return


def foreseen_gains(faint: FaintPoison) -> FloatArray:
    """The change of the score that each range would bring in each set of groups; gains are below 0.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts, PoisonModel, fit
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> gains = foreseen_gains(FaintPoison.besides(fit(counts, PoisonModel.nobody(4, 64))))
    >>> bool((gains > 0).all())
    True
    """
    # The first group stands for all. A range without a bucket is none.
    supports = faint.shapes[:, :1] > 0
    places = np.where(supports.any(axis=(1, 2)), place_prices(supports), np.inf)
    sets = np.array([set_price(attacked) for attacked in faint.sets])
    deviations = faint.deviations.clip(min=0.0)
    prices = places + sets[:, None] + 1 + np.log1p(deviations**2)
    gains: FloatArray = prices - deviations**2
    return gains


def _extended(best: Fit, faint: FaintPoison, chosen: tuple[int, int]) -> PoisonModel:
    """The best model with one more range: alike if in the same groups, else of each group's own."""
    attacked, shape = faint.sets[chosen[0]], faint.shapes[chosen[1]]
    support = best.model.support | (attacked[:, None] & (shape > 0))
    if best.model.shared and np.array_equal(attacked, best.model.attacked):
        shared = PoisonModel.alike(np.any(support, axis=0), len(attacked), attacked)
        return shared.with_free_shares() if best.model.free_shares else shared
    return PoisonModel(OWN, support, best.model.free_shares)
