"""The joint estimator: one likelihood over all groups of a tier, with an interval and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from unpoison.distribution import Distribution, mixture
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate import BlindSpot, Byzantine, Estimate
from unpoison.protocols.assembly import answer_of, place_of, trusted_of, unfiltered
from unpoison.protocols.joint_analysis import LEVEL, JointAnalysis
from unpoison.protocols.joint_verdict import joint_verdict
from unpoison.protocols.options import FilterOptions
from unpoison.statistic import DISTRIBUTION, Statistic
from unpoison.summary import Summary
from unpoison.types import FloatArray


def estimate_joint(
    summary: Summary, options: FilterOptions | None = None, asked: Statistic | None = None
) -> Estimate:
    """All groups of a tier together; tiers are combined by their honest users.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 50_000)
    >>> run = simulate(plan, values, "evasion:0.3", 0.2, np.random.default_rng(2))
    >>> answer = estimate_joint(run.summary)
    >>> low, high = answer.interval
    >>> low < run.truth < high, round(answer.byzantine.fraction, 2)
    (True, 0.2)
    """
    if summary.plan.protocol != "dap":
        rule = "must be baseline or a defence for a baseline plan"
        raise InvalidParameter("method", rule, "joint")
    present = summary.tiers_with_reports
    if not present:
        raise NotEnoughData("an estimate needs reports; received none")
    options, asked = options or FilterOptions(), asked or Statistic.of(summary.plan)
    return _assembled(
        summary, [JointAnalysis(summary, groups) for groups in present], options, asked
    )


def _assembled(
    summary: Summary, tiers: list[JointAnalysis], options: FilterOptions, asked: Statistic
) -> Estimate:
    honest = np.array([tier.honest_users for tier in tiers])
    weights = honest / honest.sum()
    details = [
        tier.tier_estimate(float(weight)) for tier, weight in zip(tiers, weights, strict=True)
    ]
    answer, trusted = (
        answer_of(details, asked),
        trusted_of(summary, [tier.counts.groups for tier in tiers], asked),
    )
    byzantine, interval = _byzantine(summary, tiers), _interval(summary, tiers, weights)
    share = options.blind_share
    blind = BlindSpot(share, _largest_shift(summary, tiers, weights, share))
    return Estimate(
        method="joint",
        **answer,
        byzantine=byzantine,
        interval=interval,
        blind_spot=blind,
        groups=tuple(each for tier in tiers for each in tier.group_estimates()),
        tiers=tuple(details),
        fit={
            **tiers[0].evidence(),
            **_frequency_intervals(tiers, weights),
            **unfiltered(trusted),
            "agreement_p_value": trusted.p_value,
        },
        converged=all(tier.fit.converged for tier in tiers),
        users=summary.total_users,
        reports=int(summary.reports.sum()),
        invalid=summary.invalid,
        verdict=joint_verdict(tiers, answer, byzantine, interval, trusted, blind),
        distribution=_distribution(tiers, weights, options, asked),
    )


def _distribution(
    tiers: list[JointAnalysis], weights: FloatArray, options: FilterOptions, asked: Statistic
) -> Distribution | None:
    if asked.name != DISTRIBUTION:
        return None
    return mixture([tier.distribution(options) for tier in tiers], weights.tolist())


def _interval(
    summary: Summary, tiers: list[JointAnalysis], weights: FloatArray
) -> tuple[float, float] | None:
    """For the mean: that of the only tier, or of all by weight; categories have one each."""
    plan = summary.plan
    if plan.categorical:
        return None
    low, high = _combined([tier.hull(tier.counts.values) for tier in tiers], weights)
    bounds = plan.bounds
    ends = sorted(min(max(plan.natural(end), bounds[0]), bounds[1]) for end in (low, high))
    return ends[0], ends[1]


def _combined(hulls: Sequence[tuple[float, float]], weights: FloatArray) -> tuple[float, float]:
    """Independent parts, each with its weight: half-widths add up in squares."""
    lows, highs = np.array(hulls).T
    middle = float(weights @ (lows + highs)) / 2
    half = float(np.sqrt(np.sum((weights * (highs - lows) / 2) ** 2)))
    return middle - half, middle + half


def _frequency_intervals(tiers: list[JointAnalysis], weights: FloatArray) -> dict[str, Any]:
    """A 95 % interval for the frequency of each category."""
    names = tiers[0].summary.plan.categories
    if names is None:
        return {}
    found = {}
    for place, name in enumerate(names):
        unit = np.eye(len(names))[place]
        low, high = _combined([tier.hull(unit) for tier in tiers], weights)
        found[name] = [max(low, 0.0), min(high, 1.0)]
    return {"frequency_intervals": found}


def _byzantine(summary: Summary, tiers: list[JointAnalysis]) -> Byzantine:
    """γ̂ over all users, with its interval and the main tier's poison."""
    users = np.array([tier.counts.users.sum() for tier in tiers])
    weights = users / users.sum()
    share = float(weights @ [tier.share for tier in tiers])
    errors = weights * [tier.strain * tier.share_deviation for tier in tiers]
    half = norm.isf(LEVEL / 2) * float(np.sqrt(np.sum(errors**2)))
    return Byzantine(
        share,
        interval=(max(share - half, 0.0), min(share + half, 1.0)),
        histogram=tiers[0].histogram(),
        **place_of(summary, [tier.place() for tier in tiers]),
    )


def _largest_shift(
    summary: Summary, tiers: list[JointAnalysis], weights: FloatArray, share: float
) -> float:
    """In natural units, or as a frequency."""
    shift = float(weights @ [tier.blind(share) for tier in tiers])
    return shift if summary.plan.categorical else shift * summary.plan.unit
