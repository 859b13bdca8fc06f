"""The joint estimate of many categories: the fit category by category, and its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unpoison.estimate.distribution import Distribution
from unpoison.estimate.estimate import (
    Estimate,
    GroupEstimate,
    Histogram,
    TierEstimate,
    WorstCase,
)
from unpoison.estimate.finding import ATTACKERS_FOUND, UNCLEAR
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.significance import NOBODY_ATTACKS_LEVEL
from unpoison.estimate.statistic import Statistic, named
from unpoison.estimate.wording import compare_frequencies, list_names
from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.categories import CategoryFit, SupportCounts, fit_categories
from unpoison.filters.categories.attackers import OWN
from unpoison.filters.categories.constants import TWO_SIDED_95
from unpoison.filters.categories.possible import least_attackers, possible_frequencies
from unpoison.protocols import joint_constants, verdict_sentences
from unpoison.protocols.assembly import Assembly
from unpoison.protocols.weights import honest_weights
from unpoison.summary import Summary
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class CategoriesAnalysis:
    """One tier of many categories: an `Analysis` whose numbers come from one line a category.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=[f"c{i}" for i in range(300)])
    >>> run = simulate(plan, ["c1"] * 60_000, "targets:c7", 0.1, np.random.default_rng(1))
    >>> analysis = CategoriesAnalysis(run.summary, range(3))
    >>> analysis.place(), round(analysis.byzantine_fraction, 2)
    ({'categories': ('c7',)}, 0.1)
    """

    summary: Summary
    groups: Sequence[int]
    converged: bool = True
    """Lines have a closed form."""

    @cached_property
    def members(self) -> list[int]:
        """The groups that have reports."""
        return [group for group in self.groups if self.summary.reports[group]]

    @cached_property
    def supports(self) -> SupportCounts:
        """The counts that lines go through."""
        return SupportCounts.of_categories(self.summary, self.members)

    @cached_property
    def fit(self) -> CategoryFit:
        """All lines, and the categories that are pushed."""
        return fit_categories(self.supports)

    @cached_property
    def group_shares(self) -> FloatArray:
        """The attackers' share in each group that has reports."""
        return self.fit.attackers.shares

    @property
    def byzantine_fraction(self) -> float:
        """The attackers' share of all users of the tier."""
        users = self.supports.users
        return float(self.group_shares @ users / users.sum())

    @property
    def honest_users(self) -> float:
        """The number of users who do not push a category."""
        return float(((1 - self.group_shares) * self.supports.users).sum())

    @property
    def outvoted(self) -> bool:
        """Whether attackers are the majority of a group."""
        return bool(self.group_shares.max() >= MOST_ATTACKERS)

    @property
    def attacked_groups(self) -> tuple[int, ...]:
        """The numbers of the groups in which categories are pushed."""
        return tuple(
            group for group, share in zip(self.members, self.group_shares, strict=True) if share > 0
        )

    def tier_estimate(self, weight: float) -> TierEstimate:
        """The tier's unprocessed frequencies and pushed categories."""
        tier = self.summary.plan.tier_of(self.groups[0])
        return TierEstimate(
            self.summary.plan.all_tiers[tier].epsilon,
            weight=weight,
            byzantine_fraction=self.byzantine_fraction,
            **named(self.summary.plan, self.fit.frequencies),
            **self.place(),
        )

    def group_estimates(self) -> list[GroupEstimate]:
        """The size and the attackers of each group; no frequencies, of which there are many."""
        plan, supports = self.summary.plan, self.supports
        weights = honest_weights(
            plan, self.members, supports.reports, supports.users, self.group_shares
        )
        return [
            GroupEstimate(
                group=group,
                tier=plan.tier_of(group),
                epsilon=plan.all_groups[group].epsilon,
                users=float(supports.users[index]),
                reports=int(supports.reports[index]),
                mean=math.nan,
                weight=float(weights[index]),
                byzantine_fraction=float(self.group_shares[index]),
            )
            for index, group in enumerate(self.members)
        ]

    def place(self) -> dict[str, Any]:
        """The names of the categories that are pushed, most pushed first."""
        pushed = np.flatnonzero(self.fit.pushed)
        order = np.argsort(-self.fit.attackers.lines.poison[pushed], kind="stable")
        categories = self.summary.plan.categories or ()
        return {"categories": tuple(categories[index] for index in pushed[order])}

    def histogram(self) -> Histogram:
        """The poison of the first attacked group, category by category."""
        group = (self.attacked_groups or tuple(self.members))[0]
        cells = self.summary.plan.cells
        fractions = self.fit.attackers.poison[self.members.index(group)]
        edges = np.arange(cells + 1, dtype=np.float64)
        return Histogram(group, tuple(edges.tolist()), tuple(fractions.tolist()))

    def fraction_interval(self) -> tuple[float, float] | None:
        """A 95 % interval of the attackers who push categories; None if nobody was found to.

        Those who spread their reports as honest users do are not in it: nothing shows them.
        """
        if not self.group_shares.any():
            return None
        share = self.byzantine_fraction
        part = share / float(self.group_shares.max())
        half = TWO_SIDED_95 * self.fit.attackers.deviation * part
        return max(share - half, 0.0), min(share + half, 1.0)

    def distribution(self) -> Distribution:
        """Categories have none."""
        raise NotImplementedError("categories have frequencies, and no distribution")


def estimate_many_categories(
    summary: Summary,
    tiers: Sequence[Sequence[int]],
    method: str,
    statistic: Statistic,
    options: FilterOptions,
) -> Estimate:
    """The Estimate of a collection with more categories than the dense solver takes.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=[f"c{i}" for i in range(300)])
    >>> run = simulate(plan, ["c1"] * 60_000, "targets:c7", 0.1, np.random.default_rng(1))
    >>> answer = estimate_many_categories(
    ...     run.summary, [range(3)], "joint", Statistic.of(plan), FilterOptions())
    >>> answer.byzantine.categories, round(answer.frequencies["c1"], 1)
    (('c7',), 1.0)
    """
    analyses = [CategoriesAnalysis(summary, groups) for groups in tiers]
    assembly = Assembly(summary, method, analyses, statistic)
    worst_case = _worst_case(assembly, analyses, options)
    p_values = {
        "nobody_attacks_p_value": [analysis.fit.nobody_p_value for analysis in analyses],
        "goodness_of_fit_p_value": [analysis.fit.fit_p_value for analysis in analyses],
    }
    fit: dict[str, Any] = {
        "model": analyses[0].fit.attackers.kind,
        **{name: min(1.0, len(tiers) * min(values)) for name, values in p_values.items()},
        "attacked_groups": [group for one in analyses for group in one.attacked_groups],
        "frequency_intervals": _intervals(assembly, analyses),
        **assembly.unfiltered_fit(),
    }
    fit["fits"] = fit["goodness_of_fit_p_value"] >= NOBODY_ATTACKS_LEVEL
    own = any(analysis.fit.attackers.kind == OWN for analysis in analyses)
    fit["doubt"] = not fit["fits"] or own or any(analysis.outvoted for analysis in analyses)
    finding = ATTACKERS_FOUND if assembly.byzantine.fraction > 0 else UNCLEAR
    verdict = _Verdict(assembly, analyses, worst_case, fit)
    return assembly.estimate(fit, str(verdict), finding, worst_case=worst_case)


def _intervals(
    assembly: Assembly, analyses: Sequence[CategoriesAnalysis]
) -> dict[str, list[float]]:
    """A 95 % interval for the frequency of each category."""
    ends = _combined(assembly, [analysis.fit.intervals() for analysis in analyses])
    names = assembly.summary.plan.categories or ()
    return dict(zip(names, ends.T.tolist(), strict=True))


def _combined(assembly: Assembly, tiers: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Low and high ends of all categories, those of tiers added as `combined_interval` does."""
    weighted = [
        weight * np.stack(ends) for weight, ends in zip(assembly.weights, tiers, strict=True)
    ]
    return np.asarray(sum(weighted))


def _worst_case(
    assembly: Assembly, analyses: Sequence[CategoriesAnalysis], options: FilterOptions
) -> WorstCase:
    """What is possible with at most a share of attackers in each group, whatever they send."""
    at_most = options.attackers_at_most
    if at_most is None:
        most = max(
            float(analysis.group_shares.max()) + TWO_SIDED_95 * analysis.fit.attackers.deviation
            for analysis in analyses
        )
        at_most = min(most + joint_constants.MARGIN, MOST_ATTACKERS)
    least = max(least_attackers(analysis.supports) for analysis in analyses)
    tiers = [possible_frequencies(analysis.supports, at_most) for analysis in analyses]
    if least > at_most or any((low > high).any() for low, high in tiers):
        return WorstCase(at_most, None, None, least)
    names = assembly.summary.plan.categories or ()
    ends = _combined(assembly, tiers).tolist()
    lows, highs = (dict(zip(names, side, strict=True)) for side in ends)
    return WorstCase(at_most, lows, highs, least)


@dataclass(frozen=True, eq=False)
class _Verdict:
    """The sentences about a fit category by category."""

    assembly: Assembly
    tiers: Sequence[CategoriesAnalysis]
    worst_case: WorstCase
    fit: dict[str, Any]

    def __str__(self) -> str:
        return " ".join(part for part in (self._found(), self._doubt(), self._worst()) if part)

    def _found(self) -> str:
        share = f"{100 * self.assembly.byzantine.fraction:.1f} %"
        if any(tier.outvoted for tier in self.tiers):
            return verdict_sentences.outvoted(share)
        names = self.assembly.byzantine.categories or ()
        if not names:
            p_value = self.fit["nobody_attacks_p_value"]
            return (
                f"No category is pushed (p = {p_value:.2g}). Attackers who spread their reports "
                "over categories as honest users do would not be seen."
            )
        comparison = compare_frequencies(
            names,
            self.assembly.answer["frequencies"],
            self.assembly.unfiltered.frequencies or {},
        )
        where = self._groups()
        return f"About {share} of users{where} push {list_names(names)}: {comparison}."

    def _groups(self) -> str:
        if len(self.tiers) > 1:
            return ""
        attacked = self.tiers[0].attacked_groups
        return verdict_sentences.of_some_groups(attacked, len(self.tiers[0].members))

    def _doubt(self) -> str:
        doubts = []
        if any(tier.fit.attackers.kind == OWN for tier in self.tiers):
            doubts.append(
                "They do so in each group in another way: how many honest users have these "
                "categories cannot be told, only at most how many."
            )
        if not self.fit["fits"]:
            doubts.append(
                "Groups differ in a way that pushed categories do not explain (p = "
                f"{self.fit['goodness_of_fit_p_value']:.2g}): take the frequencies with care."
            )
        return " ".join(doubts)

    def _worst(self) -> str:
        frequencies = self.assembly.answer["frequencies"]
        off = verdict_sentences.frequencies_off_by(self.worst_case, frequencies)
        return verdict_sentences.worst_case(self.worst_case, off)
