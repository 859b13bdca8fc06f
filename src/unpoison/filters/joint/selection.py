"""Choice of a model of the poison, and the other models that the data cannot rule out.

docs/method.md, Which model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit
from unpoison.filters.joint.group_search import search_attacked_groups
from unpoison.filters.joint.initial_support import (
    in_any_group,
    initial_supports,
    one_sided_supports,
    widened,
)
from unpoison.filters.joint.model import ALIKE, EVEN, NOBODY, OWN, RANGE, PoisonModel
from unpoison.filters.joint.model_search import ModelSearch, Standing, attacker_share
from unpoison.filters.joint.point_values import with_point_values
from unpoison.filters.joint.range_search import (
    move_range,
    search_missing_poison,
    search_ranges,
)
from unpoison.filters.joint.support_search import (
    refine_best,
    refine_support,
    try_without_islands,
)
from unpoison.types import BoolArray


@dataclass(frozen=True, eq=False)
class ModelChoice:
    """The chosen model, and the others that may be true as well.

    `counts` may have more values of users than the counts that were asked about. `others` are
    those that the data cannot rule out; if no model fits, all that were tried, but for poison of
    each group's own with a majority of attackers.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> choice = choose_model(JointCounts.of(run.summary, range(4)))
    >>> choice.best.model.kind, choice.fits, round(choice.attacker_share, 2)
    ('range', True, 0.3)
    """

    counts: JointCounts
    best: Fit
    nobody: Fit
    even: Fit
    others: tuple[Fit, ...]
    error_factor: float = 1.0
    """Factor on standard errors if reports of one user are alike, as some broken clients' are."""

    @property
    def attacker_share(self) -> float:
        """γ̂: the share of attackers among users of attacked groups."""
        return attacker_share(self.counts, self.best)

    @property
    def fits(self) -> bool:
        """Whether the goodness-of-fit test accepts the chosen model."""
        return self.best.p_value > constants.LEAST_FIT_P_VALUE

    @property
    def fits_poorly(self) -> bool:
        """Whether the test accepts the model, but with a p-value that calls for a warning."""
        return self.fits and self.best.p_value < constants.POOR_FIT_P_VALUE

    @property
    def single_group_poisoned(self) -> bool:
        """Whether poison was found in one group, without others to compare it with."""
        return len(self.counts.groups) == 1 and self.attacker_share > 0

    @property
    def other_kinds(self) -> tuple[str, ...]:
        """Other kinds of model that may be true as well."""
        kinds = dict.fromkeys(_told_kind(candidate) for candidate in self.others)
        return tuple(kind for kind in kinds if kind != _told_kind(self.best))

    @property
    def doubtful(self) -> bool:
        """Whether the answer may be off by more than its interval says."""
        unclear = bool(self.other_kinds) or not self.fits or not self.best.converged
        return unclear or self.fits_poorly or self.single_group_poisoned


def _told_kind(candidate: Fit) -> str:
    """The kind of a model as it is told: evenly spread in a range is alike in all groups."""
    return ALIKE if candidate.model.kind == RANGE else candidate.model.kind


def choose_model(counts: JointCounts) -> ModelChoice:
    """The model with the least score of those that fit the counts.

    Simple explanations are tried first: nobody attacks, or noise over the whole domain, or the same
    poison in all groups. Only if none of these fits may every group have poison of its own.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=rng)
    >>> choose_model(JointCounts.of(run.summary, range(4))).attacker_share
    0.0
    """
    supports, nobody = initial_supports(counts), PoisonModel.nobody(*counts.counts.shape)
    even = PoisonModel.even(*counts.counts.shape)
    search = _search_simple_models(counts, supports)
    search_ranges(search)
    # A poor fit may be due to values that many users share: these come before any other attack.
    # Twice, because the poison is found only with about the right values, and these with it.
    values_without_poison: JointCounts | None = None
    for _ in range(constants.VALUE_SEARCHES):
        if not _explains_badly(search.best):
            break
        poisoned = [] if search.best.model.kind in (NOBODY, EVEN) else [search.best.model]
        values_without_poison = values_without_poison or with_point_values(counts, [nobody, even])
        finer = _with_point_values(values_without_poison, search, poisoned, supports)
        # Values that explain next to nothing would make all that follows slow.
        if finer is search or counts.is_hopeless(finer.best.deviance):
            break
        search = finer
        search_ranges(search)
    search_attacked_groups(search)
    _search_free_shares(search, supports)
    if not search.is_possible(search.best):
        _search_own_models(search, supports)
    if _explains_badly(search.best) and search.best.model.kind == OWN:
        search = _with_point_values(search.counts, search, [search.best.model], supports)
        _search_own_models(search, [search.best.model.support, *supports])
    search_missing_poison(search)
    nobody_fit, even_fit, others = search.fit(nobody), search.fit(even), _plausible_others(search)
    return ModelChoice(search.counts, search.best, nobody_fit, even_fit, others)


def _explains_badly(candidate: Fit) -> bool:
    return candidate.p_value < constants.REFINEMENT_LEVEL


def _search_simple_models(counts: JointCounts, supports: list[BoolArray]) -> ModelSearch:
    """A search with `nobody`, `even`, and `alike` from every support to start from."""
    search = ModelSearch(counts)
    groups, outputs = counts.counts.shape
    search.fit(PoisonModel.nobody(groups, outputs))
    search.fit(PoisonModel.even(groups, outputs))
    starts = [np.ones(outputs, dtype=bool), *map(in_any_group, supports)]
    refine_best(search, [PoisonModel.alike(buckets, groups) for buckets in starts])
    return search


def _with_point_values(
    counts: JointCounts, search: ModelSearch, models: list[PoisonModel], supports: list[BoolArray]
) -> ModelSearch:
    """A new search with the values of users added that the models ask for, if these are others."""
    finer = with_point_values(counts, models)
    if np.array_equal(finer.values, search.counts.values):
        return search
    finer_search = _search_simple_models(finer, supports)
    for model in models:
        finer_search.fit(model)
    return finer_search


def _search_free_shares(search: ModelSearch, supports: list[BoolArray]) -> None:
    """Try the best model with shares that random groups do not tie; if none fits, from all starts.

    Attackers who report in one group more often than in another are such a case.
    """
    best, groups = search.best.model, len(search.counts.groups)
    if best.tied_shares:
        refine_support(search, best.with_free_shares())
    if not search.is_possible(search.best) and groups > 1:
        starts = [PoisonModel.alike(in_any_group(support), groups) for support in supports]
        refine_best(search, [start.with_free_shares() for start in starts])
    _try_attacked_alone(search)


def _try_attacked_alone(search: ModelSearch) -> None:
    """If free shares are within noise in some groups: try the others alone, with tied shares."""
    best = search.best
    errors = np.sqrt(np.maximum(np.diag(best.share_covariance), 0.0))
    attacked = best.attacker_shares > constants.NOTICEABLE_RESIDUAL * errors
    if best.model.free_shares and attacked.any() and not attacked[best.model.attacked].all():
        support = best.model.support & attacked[:, None]
        refine_support(search, replace(best.model, support=support, free_shares=False))


def _search_own_models(search: ModelSearch, supports: list[BoolArray]) -> None:
    """Try poison of each group's own from the linear program's support and the best others."""
    if supports:
        refine_support(search, PoisonModel.own(supports[0]))
    others = supports[1:] + one_sided_supports(search.counts)
    refine_best(search, [PoisonModel.own(support) for support in others])
    try_without_islands(search)


def _plausible_others(search: ModelSearch) -> tuple[Fit, ...]:
    """Fits that may be true as well as the best; all informative ones if the best does not fit."""
    move_range(search)
    best, tried = search.best, list(search.fits.values())
    if best.p_value > constants.LEAST_FIT_P_VALUE:
        others = [fit for fit in tried if fit is not best and _is_plausible(search, best, fit)]
        return *others, *_widened_fits(search, best)
    informative = (fit for fit in tried if search.rank(fit)[0] < Standing.EXPLAINS_ANYTHING)
    return tuple(fit for fit in informative if fit is not best)


def _widened_fits(search: ModelSearch, best: Fit) -> list[Fit]:
    """The best with more buckets on either side: poison may end within one, or fade away."""
    model = best.model
    # Categories have no neighbours, and noise is everywhere.
    if not search.counts.ordered or model.kind in (NOBODY, EVEN):
        return []
    if model.kind == RANGE:
        model = PoisonModel.alike(in_any_group(model.support), len(model.attacked), model.attacked)
    supports = (widened(model.support, reach) for reach in constants.WIDENINGS)
    fits = [search.fit(model.with_support(support)) for support in supports]
    return [fit for fit in fits if fit is not best and search.is_possible(fit)]


def _is_plausible(search: ModelSearch, best: Fit, candidate: Fit) -> bool:
    """Whether a model fits, and its score is close; or whether it is significantly better.

    The latter is asked of simpler kinds only: poison of a group's own absorbs noise. So does a
    little poison in the one bucket of all with the largest residual, if nobody attacks and that
    explains the counts: other kinds than noise are then no news.
    """
    kind = candidate.model.kind
    nobody_explains = best.model.kind == NOBODY and best.p_value > constants.SIGNIFICANCE
    absorbs_noise = nobody_explains and kind != EVEN
    if absorbs_noise or not search.is_possible(candidate):
        return False
    parameters = candidate.model.parameter_count - best.model.parameter_count
    gain = best.deviance - candidate.deviance
    # A share of noise can only be positive, so its test has one side.
    level = 2 * constants.SIGNIFICANCE if kind == EVEN else constants.SIGNIFICANCE
    better = (
        parameters > 0
        and float(scipy.special.chdtrc(parameters, max(gain, 0.0))) < level
        and kind != OWN
    )
    return better or search.score(candidate) - search.score(best) < constants.CLOSE_SCORE
