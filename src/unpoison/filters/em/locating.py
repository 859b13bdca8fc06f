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
import scipy

from unpoison.filters.em.category_deviance import support_deviance, unit_deviance
from unpoison.filters.em.group_counts import GroupCounts
from unpoison.filters.em.loop import MAX_ITERATIONS, Solution, maximise
from unpoison.filters.em.probing import preferred_side
from unpoison.mechanisms import CategoricalMechanism
from unpoison.types import BoolArray

FALSE_ALARM_LEVEL = 1e-3
"""The largest chance with which honest reports alone may look poisoned."""
MOST_CHOSEN_BY_RULE = 8
"""Categories that the rule chooses, at most. If more are open, those of the largest counts are
taken: each choice takes EM runs, whose cost an attacker could drive up."""


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
        """The estimated share of attackers, γ̂."""
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
    search = _CategorySearch(group, rule, max_iterations)
    categories = search.fewest()
    support = search.mask(categories)
    (solution,) = maximise([group.emf(support)], max_iterations)
    return Located(
        categories=tuple(sorted(categories)),
        solution=solution,
        deviances=(search.deviance(search.mask([])), search.deviance(support)),
        allowed=search.allowed,
        ruled=search.ruled,
    )


class _CategorySearch:
    """Search for the fewest categories in which poison explains one group's counts."""

    def __init__(self, group: GroupCounts, rule: str, max_iterations: int) -> None:
        self.group, self.rule, self.max_iterations = group, rule, max_iterations
        self.mechanism = cast(CategoricalMechanism, group.buckets.mechanism)
        # The least expected count: at least half of users are honest, each reports a category with
        # probability `other` or more.
        fewest_expected = float(group.counts.sum()) * self.mechanism.other / 2
        threshold = float(scipy.special.chdtri(self.mechanism.cells - 1, FALSE_ALARM_LEVEL))
        self.allowed = threshold * unit_deviance(fewest_expected)
        self.ruled = False

    def fewest(self) -> list[int]:
        """The smallest set that explains the counts; if there are several, one by the rule."""
        if self.explains([]):
            return []
        by_count: list[int] = np.argsort(-self.group.counts, kind="stable").tolist()
        # Of sets of one size that of the largest counts explains best: halving finds the size.
        sizes = range(len(by_count))
        size = bisect_left(sizes, True, key=lambda size: self.explains(by_count[:size]))
        largest, one_more = by_count[:size], by_count[: size + 1]
        # A category is needed if the next smaller one cannot stand in for it.
        needed = [
            category
            for category in largest
            if not self.explains([other for other in one_more if other != category])
        ]
        if len(needed) == size:
            return largest
        self.ruled = True
        if size - len(needed) > MOST_CHOSEN_BY_RULE:
            return largest
        return self.by_rule(needed, by_count, size)

    def by_rule(self, needed: list[int], by_count: list[int], size: int) -> list[int]:
        """Add categories to those that are needed, one after another, up to the size.

        A category is a candidate if it and the largest others, as many as are still to come, would
        explain the counts. If one is too small for that, so are all smaller ones.
        """
        chosen = list(needed)
        while len(chosen) < size:
            taken = set(chosen)
            others = [category for category in by_count if category not in taken]
            to_come = size - len(chosen)
            companions = [*chosen, *others[: to_come - 1]]
            first_too_small = bisect_left(
                range(len(others)),
                True,
                lo=to_come,
                key=lambda index: not self.explains([*companions, others[index]]),
            )
            chosen.append(self._halved(sorted(others[:first_too_small]), chosen))
        return chosen

    def _halved(self, candidates: list[int], beside: list[int]) -> int:
        """Alg. 3 on two sides of the candidates, again and again on the side that it prefers."""
        while len(candidates) > 1:
            middle = len(candidates) // 2
            halves = candidates[:middle], candidates[middle:]
            problems = [self.group.emf(self.mask([*beside, *half])) for half in halves]
            first, second = maximise(problems, self.max_iterations)
            candidates = halves[preferred_side(first, second, self.rule)]
        return candidates[0]

    def explains(self, categories: list[int]) -> bool:
        """Whether honest users and poison on these categories alone could have sent the counts."""
        return self.deviance(self.mask(categories)) <= self.allowed

    def deviance(self, support: BoolArray) -> float:
        """Deviance of the counts with poison on a support."""
        return support_deviance(self.mechanism, self.group.counts, support)

    def mask(self, categories: list[int]) -> BoolArray:
        """Categories as a support."""
        mask = np.zeros(self.mechanism.cells, dtype=bool)
        mask[categories] = True
        return mask
