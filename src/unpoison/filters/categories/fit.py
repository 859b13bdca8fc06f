"""The fit category by category: which are pushed, in which groups, and by how many attackers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy

from unpoison.filters.categories.attackers import (
    OWN,
    Attackers,
    alike_attackers,
    own_attackers,
    own_poison,
)
from unpoison.filters.categories.constants import (
    COMMON_CELLS,
    FALSE_ALARMS,
    FALSELY_NAMED,
    FIRST_TAKEN,
    LEAST_EXPECTED,
    MOST_GROUPS_IN_ANY_SET,
    MOST_TURNS,
    POOR_FIT,
    TWO_SIDED_95,
)
from unpoison.filters.categories.lines import through_origin, with_poison
from unpoison.filters.categories.support import SupportCounts
from unpoison.filters.categories.tails import log_tails, log_tails_of_all_users
from unpoison.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class CategoryFit:
    """Frequencies of the honest users, the categories that are pushed, and how sure that is.

    >>> from unpoison import Plan, simulate
    >>> names = [f"c{i}" for i in range(300)]
    >>> plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=names)
    >>> values = np.random.default_rng(1).choice(names[:20], 200_000)
    >>> run = simulate(plan, values, "targets:c299", 0.05, np.random.default_rng(2))
    >>> fit = fit_categories(SupportCounts.of_categories(run.summary, range(3)))
    >>> np.flatnonzero(fit.pushed).tolist(), bool(0.03 < fit.attackers.shares.max() < 0.07)
    ([299], True)
    """

    attackers: Attackers
    pushed: BoolArray
    nobody_p_value: float
    """Chance that honest users alone push a category as far, or differ as much between groups."""
    fit_p_value: float

    @property
    def frequencies(self) -> FloatArray:
        """The frequency of each category among honest users; unbiased, so some are negative."""
        return self.attackers.lines.honest

    @property
    def deviations(self) -> FloatArray:
        """The standard deviation of each frequency, with that of the attackers' share."""
        largest = float(self.attackers.shares.max())
        by_share = np.maximum(self.frequencies, 0.0) * self.attackers.deviation / (1 - largest)
        return np.sqrt(self.attackers.lines.honest_variance + by_share**2)

    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """95 % intervals of the frequencies, within what frequencies can be."""
        half = TWO_SIDED_95 * self.deviations
        low, high = self.frequencies - half, self.frequencies + half
        if self.attackers.kind == OWN:
            # Of poison that differs between groups, only the most that honest users can have is
            # known.
            low = np.where(self.pushed, 0.0, low)
            high = np.where(self.pushed, self.attackers.most_honest + half, high)
        low, high = np.clip([low, high], 0.0, 1.0)
        # A frequency of zero that noise put far below it: what noise alone allows.
        return low, np.maximum(high, np.minimum(half, 1.0))


def fit_categories(supports: SupportCounts) -> CategoryFit:
    """Fit all categories of one tier.

    Those are named that honest users do not explain, in the set of groups that explains them best.
    Where no set does, each group has poison of its own.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=["tea", "milk", "water"])
    >>> run = simulate(plan, ["tea"] * 9000, rng=np.random.default_rng(1))
    >>> fit_categories(SupportCounts.of_categories(run.summary, range(2))).attackers.kind
    'nobody'
    """
    honest = through_origin(supports)
    alone = Attackers.nobody(supports, honest)
    sets = list(_identified_sets(supports))
    by_category, pushed = _pushed_categories(supports, sets)
    attackers = alone
    if pushed.any():
        attackers, pushed = _explained(supports, sets, pushed)
    nobody = min(1.0, 2 * min(by_category, _chi_squared(supports, alone)))
    return CategoryFit(attackers, pushed, nobody, _chi_squared(supports, attackers))


def _pushed_categories(
    supports: SupportCounts, sets: Sequence[BoolArray]
) -> tuple[float, BoolArray]:
    """The p-value of the category that is lifted most surely, and all that are pushed.

    Attackers take reports from the categories that they do not push, which seem to be lifted in
    other groups then. So the most lifted are taken first, and the others are judged with them.
    """
    shares = np.zeros(len(supports.reports))
    pushed = np.zeros(supports.counts.shape[1], dtype=bool)
    tests = pushed.size * (len(sets) + 1)
    limit, p_value = np.log(FALSE_ALARMS / tests), 1.0
    for turn in range(MOST_TURNS):
        among, offset = supports.among_attackers(shares), shares * supports.unpushed
        lines = through_origin(among, offset)
        by_set = [log_tails(among, lines, attacked, offset) for attacked in sets]
        rarest = np.min([log_tails_of_all_users(supports), *by_set], axis=0)
        if turn == 0:
            p_value = float(np.exp(min(0.0, float(rarest.min()) + np.log(tests))))
        suspicious = (rarest < limit) & ~pushed
        if not suspicious.any() or not sets:
            break
        excess = own_poison(supports, suspicious)[0].max(axis=0)
        pushed |= suspicious & (excess >= FIRST_TAKEN * excess.max())
        shares = own_poison(supports, pushed)[1]
    return p_value, pushed


def _explained(
    supports: SupportCounts, sets: Sequence[BoolArray], pushed: BoolArray
) -> tuple[Attackers, BoolArray]:
    """Attackers who push these categories, and fainter ones, alike in a set of groups.

    If no set explains them, attackers who differ between groups.
    """
    attacked = _best_set(supports, sets, pushed)
    attackers = alike_attackers(supports, attacked, pushed)
    if not _lines_fit(supports, attackers, pushed):
        return own_attackers(supports, pushed), pushed
    fainter = pushed | _faintly_pushed(supports, attacked, attackers)
    wider = alike_attackers(supports, attacked, fainter)
    return (wider, fainter) if _lines_fit(supports, wider, fainter) else (attackers, pushed)


def _faintly_pushed(
    supports: SupportCounts, attacked: BoolArray, attackers: Attackers
) -> BoolArray:
    """Further categories in groups that are known to be attacked: a few may be named falsely."""
    among = supports.among_attackers(attackers.shares)
    offset = attackers.shares * supports.unpushed
    tails = log_tails(among, through_origin(among, offset), attacked, offset)
    return np.asarray(tails < np.log(FALSELY_NAMED / tails.size))


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


def _best_set(supports: SupportCounts, sets: Sequence[BoolArray], pushed: BoolArray) -> BoolArray:
    """The set of groups whose poison explains the pushed categories best.

    By the deviance of lines with poison, of which every set has as many numbers.
    """
    few = supports.chosen(pushed)
    return sets[int(np.argmin([_deviance(few, attacked) for attacked in sets]))]


def _deviance(supports: SupportCounts, attacked: BoolArray) -> float:
    lines = with_poison(supports, attacked)
    poison = (supports.pushed * attacked)[:, None] * lines.poison
    share = supports.baseline[:, None] + supports.signal[:, None] * lines.honest + poison
    reports = supports.reports[:, None]
    expected = np.clip(share, LEAST_EXPECTED / reports, 1.0) * reports
    observed = supports.counts
    surplus = scipy.special.xlogy(observed, observed / expected) - observed + expected
    return float(2 * surplus.sum())


def _lines_fit(supports: SupportCounts, attackers: Attackers, pushed: BoolArray) -> bool:
    """Whether lines with alike poison explain the pushed categories."""
    freedom = (len(supports.reports) - 2) * int(pushed.sum())
    if freedom <= 0:
        return True
    squares = attackers.squares(supports)[:, pushed].sum()
    return bool(scipy.special.chdtrc(freedom, squares) >= POOR_FIT)


def _chi_squared(supports: SupportCounts, attackers: Attackers) -> float:
    """p-value of the differences between lines and groups, of all categories together.

    1 where cells expect too few reports for the χ² distribution to be theirs.
    """
    if supports.counts.mean() < COMMON_CELLS:
        return 1.0
    groups, categories = supports.counts.shape
    freedom = (groups - 1) * categories - attackers.numbers
    if freedom <= 0:
        return 1.0
    return float(scipy.special.chdtrc(freedom, attackers.squares(supports).sum()))
