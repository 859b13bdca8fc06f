"""Probing: the poisoned side, γ̂ and ŷ, from the group with the smallest ε (Alg. 3)."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.filters.em import MAX_ITERATIONS, Solution, maximise
from unpoison.filters.emf import GroupCounts
from unpoison.registry import check_name
from unpoison.sides import SIDES

SIDE_RULES = ("variance", "likelihood")


@dataclass(frozen=True)
class Probe:
    """What one group says about the attackers, with the evidence for each side.

    >>> import numpy as np
    >>> nobody = Solution(np.array([0.5, 0.5]), np.zeros(2), np.zeros(1), converged=True)
    >>> some = Solution(np.array([0.5, 0.25]), np.array([0.0, 0.25]), np.zeros(1), converged=True)
    >>> Probe("right", {"left": nobody, "right": some}).byzantine_fraction
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
        """γ̂."""
        return self.solution.byzantine_fraction


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
    >>> found = probe(GroupCounts.of(run.summary, 0), {"left": 0.0, "right": 0.0})
    >>> found.side, bool(abs(found.byzantine_fraction - 0.3) < 0.1)
    ('right', True)
    """
    check_name("side_rule", rule, SIDE_RULES)
    problems = [group.emf(group.support(side, initial_means[side])) for side in SIDES]
    solutions = dict(zip(SIDES, maximise(problems, max_iterations), strict=True))
    return Probe(_choose(solutions, rule), solutions)


def _choose(solutions: dict[str, Solution], rule: str) -> str:
    """Alg. 3, lines 3-8: left only if it is strictly better."""
    left, right = solutions["left"], solutions["right"]
    if rule == "variance":
        return "left" if left.honest.var() < right.honest.var() else "right"
    return "left" if left.likelihood > right.likelihood else "right"
