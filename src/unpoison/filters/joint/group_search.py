"""Search for the groups that are attacked (docs/method.md, Which groups are attacked)."""

from __future__ import annotations

import math

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.attacked_groups import PutAside, sets_of_groups
from unpoison.filters.joint.initial_support import in_any_group, widened
from unpoison.filters.joint.model import NOBODY, PoisonModel
from unpoison.filters.joint.model_search import ModelSearch
from unpoison.filters.joint.support_search import refine_best
from unpoison.types import BoolArray


def search_attacked_groups(search: ModelSearch) -> None:
    """Try poison in some groups alone, from supports that the other groups suggest.

    >>> from dataclasses import replace
    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, values = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> assert run.honest_summary is not None
    >>> honest = JointCounts.of(run.honest_summary, range(3))
    >>> attacked = np.array([[True], [False], [False]])
    >>> everywhere = JointCounts.of(run.summary, range(3))
    >>> counts = replace(honest, counts=np.where(attacked, everywhere.counts, honest.counts))
    >>> search = ModelSearch(counts)
    >>> search_attacked_groups(search)
    >>> search.best.model.attacked.tolist(), search.best.attacker_shares.round(2).tolist()
    ([True, False, False], [0.3, 0.0, 0.0])
    """
    search.fit(PoisonModel.nobody(*search.counts.counts.shape))
    if len(search.counts.groups) < 2 or _all_groups_agree(search):
        return
    promising = _promising_sets(search)[: constants.MOST_ATTACKED_SETS]
    starts = [model for aside in promising for model in _models(search, aside)]
    refine_best(search, starts, constants.MOST_ATTACKED_SETS)


def _all_groups_agree(search: ModelSearch) -> bool:
    """Whether honest users explain all groups, and no group stands out from the others."""
    nobody, counts = search.best, search.counts
    if nobody.model.kind != NOBODY or nobody.p_value < constants.SIGNIFICANCE:
        return False
    groups, outputs = counts.counts.shape
    singles = [PutAside.of(counts, np.arange(groups) == group) for group in range(groups)]
    gain = max(nobody.deviance - aside.rest.deviance for aside in singles)
    return bool(scipy.special.chdtrc(outputs - 1, max(gain, 0.0)) > constants.SIGNIFICANCE / groups)


def _promising_sets(search: ModelSearch) -> list[PutAside]:
    """Sets of groups without which honest users explain the others, by what their poison costs."""
    counts, best = search.counts, search.best
    most = search.score(best) if search.is_possible(best) else math.inf
    disagreeing: list[BoolArray] = []
    candidates: list[PutAside] = []
    for attacked in sets_of_groups(len(counts.groups)):
        # Groups that do not agree do so no better with others beside them.
        if any(not (attacked & groups).any() for groups in disagreeing):
            continue
        aside = PutAside.of(counts, attacked)
        rest = aside.rest
        # No poison in these groups can make the rest fit better.
        if rest.p_value < constants.LEAST_FIT_P_VALUE or rest.deviance > most:
            disagreeing.append(~attacked)
        else:
            candidates.append(aside)
    scores = {id(aside): aside.foreseen_score(counts) for aside in candidates}
    promising = [aside for aside in candidates if scores[id(aside)] < most + constants.CLOSE_SCORE]
    return sorted(promising, key=lambda aside: scores[id(aside)])


def _models(search: ModelSearch, aside: PutAside) -> list[PoisonModel]:
    """Poison in the attacked groups: of each group's own, and alike in them."""
    support = aside.excess_support(search.counts)
    if not support.any():
        return []
    wide = widened(support) & aside.attacked[:, None]
    models = [PoisonModel.own(support), PoisonModel.own(wide)]
    if aside.attacked.sum() > 1:
        alike = PoisonModel.alike(in_any_group(support), len(support), aside.attacked)
        models += [alike, alike.with_support(wide)]
    return models
