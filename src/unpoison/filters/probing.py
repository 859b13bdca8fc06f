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
    """What one group says about the attackers, with the evidence for each side."""

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
