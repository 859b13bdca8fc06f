"""Probing: the poisoned side, γ̂ and ŷ, from the group with the smallest ε (Alg. 3)."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.filters.em.group_counts import GroupCounts
from unpoison.filters.em.loop import MAX_ITERATIONS, Solution
from unpoison.filters.em.stages import Stages, run_stages
from unpoison.filters.sides import SIDES
from unpoison.registry import check_name

SIDE_RULES = ("variance", "likelihood")
"""The paper's rule of Alg. 3, and the one that also holds where the variances hardly differ."""


@dataclass(frozen=True)
class Probe:
    """The poisoned side of one group, with EMF's solution for either side.

    >>> import numpy as np
    >>> nobody = Solution(np.array([0.5, 0.5]), np.zeros(2), np.zeros(1), converged=True)
    >>> honest, poison = np.array([0.5, 0.25]), np.array([0.0, 0.25])
    >>> attacked = Solution(honest, poison, np.zeros(1), converged=True)
    >>> Probe("right", {"left": nobody, "right": attacked}).byzantine_fraction
    0.25
    """

    side: str
    solutions: dict[str, Solution]

    @property
    def solution(self) -> Solution:
        """EMF on the side that was chosen."""
        return self.solutions[self.side]

    @property
    def byzantine_fraction(self) -> float:
        """The estimated share of attackers, γ̂."""
        return self.solution.byzantine_fraction

    @property
    def runs(self) -> list[Solution]:
        """The EM runs that the side and γ̂ rest on: both sides."""
        return list(self.solutions.values())


def probe(
    group: GroupCounts,
    initial_means: dict[str, float],
    rule: str = "variance",
    max_iterations: int = MAX_ITERATIONS,
) -> Probe:
    """Run EMF with poison on either side, and choose the side by `rule`.

    `variance` is the paper's: the side on which x̂ has the smaller variance. `likelihood` takes the
    side that explains the counts better; it holds where the variances hardly differ.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> probed = probe(GroupCounts.of(run.summary, 0), {"left": 0.0, "right": 0.0})
    >>> probed.side, bool(abs(probed.byzantine_fraction - 0.3) < 0.1)
    ('right', True)
    """
    (probed,) = run_stages([probing(group, initial_means, rule)], max_iterations)
    return probed


def probing(
    group: GroupCounts, initial_means: dict[str, float], rule: str = "variance"
) -> Stages[Probe]:
    """`probe` as stages, so that its EM runs can share batches with others.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> stages = probing(GroupCounts.of(run.summary, 0), {"left": 0.0, "right": 0.0})
    >>> run_stages([stages])[0].side
    'right'
    """
    left, right = yield [group.emf(group.support(side, initial_means[side])) for side in SIDES]
    return Probe(SIDES[preferred_side(left, right, rule)], {"left": left, "right": right})


def preferred_side(first: Solution, second: Solution, rule: str) -> int:
    """Alg. 3, lines 3-8: 0 if the first of two sides is strictly better by the rule, else 1.

    >>> import numpy as np
    >>> even = Solution(np.array([0.5, 0.5]), np.zeros(2), np.array([-9.0]), converged=True)
    >>> steep = Solution(np.array([0.9, 0.1]), np.zeros(2), np.array([-7.0]), converged=True)
    >>> preferred_side(even, steep, "variance"), preferred_side(even, steep, "likelihood")
    (0, 1)
    """
    check_name("side_rule", rule, SIDE_RULES)
    if rule == "variance":
        return 0 if first.honest.var() < second.honest.var() else 1
    return 0 if first.likelihood > second.likelihood else 1
