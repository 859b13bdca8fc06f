"""Locating poisoned categories: sides of categories, split and probed again (Section V-D).

Whether poison in a set of categories explains the counts at all is a convex problem with an exact
answer, and of all sets of one size that of the largest counts explains them best. So the fewest
categories are found by halving alone; EMF probes sides, and the rule of Alg. 3 chooses between
them, where the counts leave a choice.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import chdtri, gammaln, xlogy

from unpoison.filters.em.emf import GroupCounts
from unpoison.filters.em.loop import MAX_ITERATIONS, Solution, maximise
from unpoison.filters.em.probing import preferred
from unpoison.mechanisms import CategoricalMechanism
from unpoison.types import BoolArray, FloatArray

SURE = 1e-3
"""How often honest reports alone may look poisoned, at most."""
PRECISION = 1e-12
MOST_RULED = 8
"""How many places the rule decides; of more the largest counts have them, for each takes EM runs
whose cost an attacker could drive up."""
POOREST, RICH = 1.25, 1000.0
"""The expected count with the largest `unit_deviance`, and one from which on it is known well."""


@dataclass(frozen=True)
class Located:
    """The poisoned categories by their numbers, EMF with poison on them alone, and the evidence.

    `deviances` are those with no poison and with the poison found, `allowed` is what honest reports
    reach at most once in a thousand times. `ruled` says that some category was chosen by the rule:
    as many other categories could have explained the counts.

    >>> solution = Solution(np.array([0.5, 0.25]), np.array([0.0, 0.25]), np.zeros(1), True)
    >>> located = Located((1,), solution, (912.0, 0.0), allowed=10.8, ruled=False)
    >>> located.byzantine_fraction
    0.25
    """

    categories: tuple[int, ...]
    solution: Solution
    deviances: tuple[float, float]
    allowed: float
    ruled: bool

    @property
    def byzantine_fraction(self) -> float:
        """γ̂."""
        return self.solution.byzantine_fraction

    @property
    def runs(self) -> list[Solution]:
        """The EM runs that γ̂ rests on."""
        return [self.solution]


def locate(
    group: GroupCounts, rule: str = "variance", max_iterations: int = MAX_ITERATIONS
) -> Located:
    """The fewest categories in which poison explains the counts.

    Where others, as few, would explain them too, sides of these are probed and the `rule` chooses.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new("k-rr", 0.25, min_epsilon=0.25, categories=["tea", "coffee", "milk"])
    >>> drinks = np.repeat(["tea", "coffee", "milk"], [5000, 3000, 2000])
    >>> run = simulate(plan, drinks, "targets:milk", 0.2, np.random.default_rng(1))
    >>> locate(GroupCounts.of(run.summary, 0)).categories
    (2,)
    """
    search = _Search(group, rule, max_iterations)
    found = search.fewest()
    support = search.mask(found)
    (solution,) = maximise([group.emf(support)], max_iterations)
    return Located(
        categories=tuple(sorted(found)),
        solution=solution,
        deviances=(search.deviance(search.mask([])), search.deviance(support)),
        allowed=search.allowed,
        ruled=search.ruled,
    )


def support_deviance(
    mechanism: CategoricalMechanism, counts: FloatArray, support: BoolArray
) -> float:
    """2(l_all − l): how far poison on `support` is from explaining the counts exactly.

    With S the honest share, a report is category i with probability m_i ≥ other·S, and those
    outside the support have at most S(other·(k − r) + kept − other) together. For a given S the
    likelihood is greatest where the counts are followed down to that floor (by water-filling), and
    it is concave in S.

    >>> from unpoison.mechanisms import RandomizedResponse
    >>> rr, counts = RandomizedResponse(epsilon=0.5, cells=3), np.array([100.0, 100.0, 400.0])
    >>> nowhere, last = np.zeros(3, dtype=bool), np.array([False, False, True])
    >>> support_deviance(rr, counts, nowhere) > 40, support_deviance(rr, counts, last)
    (True, 0.0)
    """
    model = _Mixture(mechanism, counts / counts.sum(), support)
    return max(2 * float(counts.sum()) * model.distance(), 0.0)


def unit_deviance(expected: float) -> float:
    """How much deviance a category has, on average, by noise alone: 1 where it has many reports.

    It is the mean of 2(c ln(c/e) − c + e) over Poisson counts c around e. With few reports (under
    ten or so) it is larger, up to 1.16 at e = 1.25, which is taken for all below: an upper bound.

    >>> [round(unit_deviance(expected), 3) for expected in (0.1, 3, 30, 3000)]
    [1.16, 1.095, 1.006, 1.0]
    """
    expected = max(expected, POOREST)
    if expected > RICH:
        return 1 + 1 / (6 * expected)
    counts = np.arange(int(2 * expected) + 100)
    chances = np.exp(xlogy(counts, expected) - expected - gammaln(counts + 1))
    return float(chances @ (2 * (xlogy(counts, counts / expected) - counts + expected)))


class _Search:
    """One group's counts, asked again and again whether a set of categories explains them."""

    def __init__(self, group: GroupCounts, rule: str, max_iterations: int) -> None:
        self.group, self.rule, self.max_iterations = group, rule, max_iterations
        self.mechanism = cast(CategoricalMechanism, group.buckets.mechanism)
        fewest = float(group.counts.sum()) * self.mechanism.other / 2
        self.allowed = float(chdtri(self.mechanism.cells - 1, SURE)) * unit_deviance(fewest)
        self.ruled = False

    def fewest(self) -> list[int]:
        """The smallest set that explains the counts; if there are several, one by the rule."""
        if self.explains([]):
            return []
        falling: list[int] = np.argsort(-self.group.counts, kind="stable").tolist()
        sizes = range(len(falling))
        size = bisect_left(sizes, True, key=lambda size: self.explains(falling[:size]))
        largest, next_one = falling[:size], falling[: size + 1]
        needed = [c for c in largest if not self.explains([o for o in next_one if o != c])]
        if len(needed) == size:
            return largest
        self.ruled = True
        if size - len(needed) > MOST_RULED:
            return largest
        return self.by_rule(needed, falling, size)

    def by_rule(self, needed: list[int], falling: list[int], size: int) -> list[int]:
        """Fill the places that several categories could have, one after another.

        A category could have one if it and the largest others, as many as are still to come, would
        do. If one is too small for that, so are all that are smaller.
        """
        chosen = list(needed)
        while len(chosen) < size:
            taken = set(chosen)
            others = [each for each in falling if each not in taken]
            left = size - len(chosen)
            rest = [*chosen, *others[: left - 1]]
            small = bisect_left(
                range(len(others)),
                True,
                lo=left,
                key=lambda place: not self.explains([*rest, others[place]]),
            )
            chosen.append(self._halved(sorted(others[:small]), chosen))
        return chosen

    def _halved(self, candidates: list[int], beside: list[int]) -> int:
        """Alg. 3 on two sides of the candidates, again and again on the side that it prefers."""
        while len(candidates) > 1:
            middle = len(candidates) // 2
            sides = candidates[:middle], candidates[middle:]
            problems = [self.group.emf(self.mask([*beside, *side])) for side in sides]
            runs = maximise(problems, self.max_iterations)
            candidates = sides[preferred(runs[0], runs[1], self.rule)]
        return candidates[0]

    def explains(self, categories: list[int]) -> bool:
        """Whether honest users and poison on these categories alone could have sent the counts."""
        return self.deviance(self.mask(categories)) <= self.allowed

    def deviance(self, support: BoolArray) -> float:
        """How far they are from it."""
        return support_deviance(self.mechanism, self.group.counts, support)

    def mask(self, categories: list[int]) -> BoolArray:
        """Categories as a support."""
        mask = np.zeros(self.mechanism.cells, dtype=bool)
        mask[categories] = True
        return mask


class _Mixture:
    """The best likelihood of honest reports and of poison on a support."""

    def __init__(
        self, mechanism: CategoricalMechanism, shares: FloatArray, support: BoolArray
    ) -> None:
        self.shares, self.support = shares, support
        self.other = mechanism.other
        outside = int((~support).sum())
        self.most_outside = mechanism.other * outside + mechanism.kept - mechanism.other

    def distance(self) -> float:
        """l_all − l, a report: 0 where some honest share S leaves every count as it is.

        That needs S ≤ `highest`, for no count to be under the floor, and S ≥ `lowest`, for those
        outside not to be too many. Where the two contradict each other, the best S lies between.
        """
        lowest = float(self.shares[~self.support].sum()) / self.most_outside
        highest = float(self.shares.min()) / self.other
        if not self.support.any() or lowest > 1 - PRECISION <= highest:
            return self.loss(1.0)
        if lowest <= min(highest, 1.0):
            return 0.0
        bounds = (min(highest, 1.0), min(lowest, 1.0))
        best = minimize_scalar(
            self.loss, bounds=bounds, method="bounded", options={"xatol": PRECISION}
        )
        # The search only comes near its ends, and the best S may be 1.
        return min(float(best.fun), self.loss(bounds[1]))

    def loss(self, honest: float) -> float:
        """l_all − l for one honest share S."""
        floor, most = self.other * honest, self.most_outside * honest
        fitted = water_filled(self.shares, 1.0, floor)
        outside = ~self.support
        if self.support.any() and fitted[outside].sum() > most:
            fitted[outside] = water_filled(self.shares[outside], most, floor)
            fitted[self.support] = water_filled(self.shares[self.support], 1 - most, floor)
        seen = self.shares > 0
        return float(self.shares[seen] @ np.log(self.shares[seen] / fitted[seen]))


def water_filled(shares: FloatArray, total: float, floor: float) -> FloatArray:
    """The m with that total, none under the floor, that maximises Σ shares·ln m.

    Those above the floor are in proportion to their shares.

    >>> water_filled(np.array([0.5, 0.375, 0.125]), total=1.0, floor=0.3).round(3).tolist()
    [0.4, 0.3, 0.3]
    """
    rising = np.sort(shares)
    below = np.arange(len(shares))
    rest = np.cumsum(rising[::-1])[::-1]
    left = total - below * floor
    above = rising * left >= floor * rest
    first = int(above.argmax()) if above.any() else len(shares) - 1
    if rest[first] <= 0:
        return np.full(len(shares), total / len(shares))
    return np.asarray(np.maximum(shares * (left[first] / rest[first]), floor))
