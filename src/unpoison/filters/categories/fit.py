"""The fit category by category: which are pushed, in which groups, and by how many attackers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy

from unpoison.filters.categories.constants import (
    COMMON_CELLS,
    FALSE_ALARMS,
    LEAST_EXPECTED,
    MOST_ATTACKERS,
    MOST_GROUPS_IN_ANY_SET,
    SETTLED,
    SHARE_ROUNDS,
)
from unpoison.filters.categories.lines import Lines, through_origin, variances, with_poison
from unpoison.filters.categories.support import SupportCounts
from unpoison.filters.categories.tails import log_tails
from unpoison.types import BoolArray, FloatArray

TWO_SIDED_95 = 1.959963984540054
"""Standard deviations of a 95 % interval."""


@dataclass(frozen=True, eq=False)
class CategoryFit:
    """Frequencies of the honest users, the categories that are pushed, and how sure that is.

    >>> from unpoison import Plan, simulate
    >>> names = [f"c{i}" for i in range(300)]
    >>> plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=names)
    >>> values = np.random.default_rng(1).choice(names[:20], 200_000)
    >>> run = simulate(plan, values, "targets:c299", 0.05, np.random.default_rng(2))
    >>> fit = fit_categories(SupportCounts.of_categories(run.summary, range(3)))
    >>> np.flatnonzero(fit.pushed).tolist(), 0.03 < fit.attackers < 0.07
    ([299], True)
    """

    lines: Lines
    pushed: BoolArray
    attacked: BoolArray
    """The groups in which the pushed categories are."""
    attackers: float
    """Their share of the users of the attacked groups."""
    attackers_deviation: float
    nobody_p_value: float
    """Chance that honest users alone push a category as far, or differ as much between groups."""
    fit_p_value: float

    @property
    def frequencies(self) -> FloatArray:
        """The frequency of each category among honest users; unbiased, so some are negative."""
        return self.lines.honest

    @property
    def deviations(self) -> FloatArray:
        """The standard deviation of each frequency, with that of the attackers' share."""
        relative = self.attackers_deviation / (1 - self.attackers)
        by_share = np.maximum(self.frequencies, 0.0) * relative
        return np.sqrt(self.lines.honest_variance + by_share**2)

    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """95 % intervals of the frequencies, within what frequencies can be."""
        half = TWO_SIDED_95 * self.deviations
        low, high = np.clip([self.frequencies - half, self.frequencies + half], 0.0, 1.0)
        # A frequency of zero that noise put far below it: what noise alone allows.
        return low, np.maximum(high, np.minimum(half, 1.0))


def fit_categories(supports: SupportCounts) -> CategoryFit:
    """Fit all categories of one tier.

    Those are named that honest users do not explain, in the set of groups that explains them best.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=["tea", "milk", "water"])
    >>> run = simulate(plan, ["tea"] * 9000, rng=np.random.default_rng(1))
    >>> fit_categories(SupportCounts.of_categories(run.summary, range(2))).pushed.any()
    np.False_
    """
    honest = through_origin(supports)
    sets = list(_identified_sets(supports))
    by_set = [log_tails(supports, honest, attacked) for attacked in sets]
    tests = max(1, honest.honest.size * len(sets))
    limit = np.log(FALSE_ALARMS / tests)
    best = _best_set(supports, sets, np.any([tails < limit for tails in by_set], axis=0))
    attacked = sets[best] if sets else np.zeros(len(supports.reports), dtype=bool)
    pushed = by_set[best] < limit if sets else np.zeros(honest.honest.size, dtype=bool)
    lines, attackers, deviation = _with_attackers(supports, attacked, pushed)
    rarest = min((float(tails.min()) for tails in by_set), default=0.0)
    by_category = float(np.exp(min(0.0, rarest + np.log(tests))))
    nobody = min(1.0, 2 * min(by_category, _chi_squared(supports, honest, None, 0.0)))
    among = supports.among_attackers(attacked, attackers)
    fitted = _chi_squared(among, lines, attacked, attackers)
    return CategoryFit(lines, pushed, attacked, attackers, deviation, nobody, fitted)


def _identified_sets(supports: SupportCounts) -> Iterator[BoolArray]:
    """Sets of groups in which poison can be told from honest reports."""
    groups = len(supports.reports)
    if groups <= MOST_GROUPS_IN_ANY_SET:
        sets = [np.array(members) for members in product([True, False], repeat=groups)]
    else:
        alone = np.eye(groups, dtype=bool)
        sets = [np.ones(groups, dtype=bool), *alone, *~alone]
    for attacked in sets:
        pushed = supports.pushed * attacked
        # Poison that weakens as the signal does looks like honest users.
        if attacked.any() and np.linalg.matrix_rank(np.stack([supports.signal, pushed])) == 2:
            yield attacked


def _best_set(supports: SupportCounts, sets: list[BoolArray], suspicious: BoolArray) -> int:
    """The set of groups whose poison explains the suspicious categories best.

    By the deviance of lines with poison, of which every set has as many numbers.
    """
    if not suspicious.any():
        return 0
    few = replace(supports, counts=supports.counts[:, suspicious])
    return int(np.argmin([_deviance(few, attacked) for attacked in sets]))


def _deviance(supports: SupportCounts, attacked: BoolArray) -> float:
    lines = with_poison(supports, attacked)
    poison = (supports.pushed * attacked)[:, None] * lines.poison
    share = supports.baseline[:, None] + supports.signal[:, None] * lines.honest + poison
    reports = supports.reports[:, None]
    expected = np.clip(share, LEAST_EXPECTED / reports, 1.0) * reports
    observed = supports.counts
    surplus = scipy.special.xlogy(observed, observed / expected) - observed + expected
    return float(2 * surplus.sum())


def _with_attackers(
    supports: SupportCounts, attacked: BoolArray, pushed: BoolArray
) -> tuple[Lines, float, float]:
    """The lines of pushed and other categories, the attackers' share and its deviation.

    Attackers support the categories that they do not push less or more than honest users do, so
    that lines and share depend on each other.
    """
    if not pushed.any():
        return through_origin(supports), 0.0, 0.0
    attackers = 0.0
    for _ in range(SHARE_ROUNDS):
        offset = attackers * supports.unpushed * attacked
        among = supports.among_attackers(attacked, attackers)
        others = through_origin(among, offset)
        poisoned = with_poison(among, attacked, offset)
        total = float(poisoned.poison[pushed].sum())
        before, attackers = attackers, min(max(total, 0.0), MOST_ATTACKERS)
        if abs(attackers - before) < SETTLED:
            break
    lines = Lines(
        np.where(pushed, poisoned.honest, others.honest),
        np.where(pushed, poisoned.poison, 0.0),
        np.where(pushed, poisoned.honest_variance, others.honest_variance),
        np.where(pushed, poisoned.poison_variance, 0.0),
    )
    return lines, attackers, float(np.sqrt(lines.poison_variance.sum()))


def _chi_squared(
    supports: SupportCounts, lines: Lines, attacked: BoolArray | None, attackers: float
) -> float:
    """p-value of the differences between lines and groups, of all categories together.

    1 where cells expect too few reports for the χ² distribution to be theirs.
    """
    if supports.counts.mean() < COMMON_CELLS:
        return 1.0
    expected = supports.signal[:, None] * lines.honest
    if attacked is not None:
        expected = expected + (supports.pushed * attacked)[:, None] * lines.poison
        expected = expected + (attackers * supports.unpushed * attacked)[:, None]
    squares = (supports.lift - expected) ** 2
    spread = variances(supports, lines.honest, lines.poison, attacked)
    groups, categories = supports.counts.shape
    freedom = (groups - 1) * categories - int((lines.poison != 0).sum())
    if freedom <= 0:
        return 1.0
    return float(scipy.special.chdtrc(freedom, (squares / spread).sum()))
