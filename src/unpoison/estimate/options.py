"""Options of the filters: the paper's choices, bounds on work, and the most attackers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unpoison.errors import InvalidParameter
from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.em.group_counts import DEFAULT_SUPPRESSION
from unpoison.filters.em.initial_mean import (
    DEFAULT_GAMMA_SUP,
    check_gamma_sup,
    middle_of_inputs,
    pessimistic_mean,
    smoothed_mean,
)
from unpoison.filters.em.loop import MAX_ITERATIONS
from unpoison.filters.em.probing import SIDE_RULES
from unpoison.filters.sides import SIDES
from unpoison.registry import check_name
from unpoison.summary import Summary

WEIGHT_RULES = ("optimal", "paper")
INITIAL_MEANS = ("middle", "pessimistic", "ems")


@dataclass(frozen=True)
class FilterOptions:
    """Options of EMF, EMF*, CEMF* and of the protocols around them.

    `initial_mean` is O': `middle` of the inputs (the paper's experiments), `pessimistic` (Thm. 2),
    `ems` (the paper's way for SW), or a number in natural units. `suppression` is CEMF*'s factor.
    `attackers_at_most` is the share of each group that attackers are assumed not to exceed, for the
    worst case of the joint filter; None: what its fit says at most, and 5 percentage points more.
    `worst_case_shares` are further shares to tell the range of the mean for.
    `enrolled` are the users of each group who were to report, if they are known: the joint filter
    compares them with those who did.

    >>> FilterOptions(gamma_sup=0.7)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: gamma_sup must be in (0, 1/2]; received 0.7
    """

    weights: str = "optimal"
    side_rule: str = "variance"
    initial_mean: str | float = "middle"
    gamma_sup: float = DEFAULT_GAMMA_SUP
    suppression: float = DEFAULT_SUPPRESSION
    max_iterations: int = MAX_ITERATIONS
    attackers_at_most: float | None = None
    worst_case_shares: tuple[float, ...] = ()
    enrolled: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("gamma_sup", "suppression", "max_iterations"):
            _check_number(name, getattr(self, name))
        check_gamma_sup(self.gamma_sup)
        check_name("weights", self.weights, WEIGHT_RULES)
        check_name("side_rule", self.side_rule, SIDE_RULES)
        if isinstance(self.initial_mean, str):
            check_name("initial_mean", self.initial_mean, INITIAL_MEANS)
        else:
            _check_number("initial_mean", self.initial_mean)
        if not self.suppression >= 0:
            raise InvalidParameter("suppression", "must not be negative", self.suppression)
        self._check_attackers()
        if self.enrolled is not None and not min(self.enrolled, default=0.0) > 0:
            raise InvalidParameter("enrolled", "must be positive, one a group", self.enrolled)
        if self.max_iterations < 1 or self.max_iterations != int(self.max_iterations):
            rule = "must be a whole number, at least 1"
            raise InvalidParameter("max_iterations", rule, self.max_iterations)

    def _check_attackers(self) -> None:
        rule = "must be in [0, 1/2]: more attackers than that outvote the honest users"
        given = () if self.attackers_at_most is None else (self.attackers_at_most,)
        shares = {"attackers_at_most": given, "worst_case_shares": self.worst_case_shares}
        for name, values in shares.items():
            for share in values:
                _check_number(name, share)
                if not 0 <= share <= MOST_ATTACKERS:
                    raise InvalidParameter(name, rule, share)

    def initial_means(self, summary: Summary, group: int) -> dict[str, float]:
        """O' of one group for either poisoned side, in the mechanism's input domain."""
        mechanism = summary.plan.group_mechanisms[group]
        counts, bound = summary.counts[group], self.max_iterations
        if self.initial_mean == "pessimistic":
            return {s: pessimistic_mean(mechanism, counts, s, self.gamma_sup) for s in SIDES}
        if self.initial_mean == "ems":
            return {s: smoothed_mean(mechanism, counts, s, self.gamma_sup, bound) for s in SIDES}
        if isinstance(self.initial_mean, str):
            return dict.fromkeys(SIDES, middle_of_inputs(mechanism))
        return dict.fromkeys(SIDES, self._given_mean(summary))

    def _given_mean(self, summary: Summary) -> float:
        low, high = summary.plan.bounds
        mean = float(self.initial_mean)
        if not low <= mean <= high:
            raise InvalidParameter("initial_mean", f"must be in [{low:g}, {high:g}]", mean)
        return summary.plan.normalise_one(mean)


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidParameter(name, "must be a finite number", repr(value))
