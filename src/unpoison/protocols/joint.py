"""The joint estimator: one likelihood over all groups of a tier, with an interval and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate import BlindSpot, Byzantine, Estimate
from unpoison.estimate.distribution import Distribution, mixture
from unpoison.estimate.statistic import DISTRIBUTION, Statistic
from unpoison.filters.joint import Intervals
from unpoison.filters.joint.interval import Interval
from unpoison.protocols.assembly import answer_of, place_of, trusted_of, unfiltered
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.protocols.joint_verdict import JointVerdict, wider
from unpoison.protocols.options import FilterOptions
from unpoison.summary import Summary
from unpoison.types import FloatArray

MOST_CATEGORIES = 256
Hull = Callable[[Intervals, FloatArray], tuple[float, float]]


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
    if len(summary.plan.categories or ()) > MOST_CATEGORIES:
        rule = f"joint takes at most {MOST_CATEGORIES} categories: emf-star takes more"
        raise InvalidParameter("method", rule, len(summary.plan.categories or ()))
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
    byzantine, share = _byzantine(summary, tiers), options.blind_share
    unseen = float(weights @ [tier.blind(share) for tier in tiers])
    blind = BlindSpot(share, unseen if summary.plan.categorical else unseen * summary.plan.unit)
    interval = _interval(summary, tiers, weights, unseen, Intervals.mean)
    noisy = _interval(summary, tiers, weights, unseen, Intervals.mean_with_noise)
    return Estimate(
        method="joint",
        **answer,
        byzantine=byzantine,
        interval=interval,
        blind_spot=blind,
        groups=tuple(each for tier in tiers for each in tier.group_estimates()),
        tiers=tuple(details),
        fit={
            **_evidence(tiers),
            **_frequency_intervals(tiers, weights),
            **unfiltered(trusted),
            "agreement_p_value": trusted.p_value,
            **_of_noise(interval, noisy),
        },
        converged=all(tier.fit.converged for tier in tiers),
        users=summary.total_users,
        reports=int(summary.reports.sum()),
        invalid=summary.invalid,
        verdict=str(JointVerdict(tiers, answer, byzantine, interval, noisy, trusted, blind)),
        distribution=_distribution(tiers, weights, options, asked),
    )


def _of_noise(interval: Interval | None, noisy: Interval | None) -> dict[str, Any]:
    """The interval if a few users send noise, and whether that is much wider."""
    if interval is None or noisy is None:
        return {}
    return {"interval_with_noise": list(noisy), "noise_could_hide": wider(noisy, interval)}


def _evidence(tiers: list[JointAnalysis]) -> dict[str, Any]:
    """That of the main tier, with the worst of all where one tier is enough to worry."""
    every = [tier.evidence() for tier in tiers]
    lowest = ("goodness_of_fit_p_value", "nobody_attacks_p_value")
    return {
        **every[0],
        **{name: min(1.0, len(every) * min(each[name] for each in every)) for name in lowest},
        "fits": all(each["fits"] for each in every),
        "doubt": any(each["doubt"] for each in every),
    }


def _distribution(
    tiers: list[JointAnalysis], weights: FloatArray, options: FilterOptions, asked: Statistic
) -> Distribution | None:
    if asked.name != DISTRIBUTION:
        return None
    return mixture([tier.distribution(options) for tier in tiers], weights.tolist())


def _interval(
    summary: Summary, tiers: list[JointAnalysis], weights: FloatArray, unseen: float, hull: Hull
) -> tuple[float, float] | None:
    """For the mean: that of the only tier, or of all by weight; categories have one each.

    Where no model fits, it also covers what attackers could have hidden; where attackers are the
    majority, it is the whole range.
    """
    plan = summary.plan
    if plan.categorical:
        return None
    if any(tier.outvoted for tier in tiers):
        return plan.bounds
    low, high = _combined([hull(tier.intervals, tier.counts.values) for tier in tiers], weights)
    if not all(tier.choice.fits for tier in tiers):
        low, high = low - unseen, high + unseen
    bounds = plan.bounds
    ends = sorted(min(max(plan.natural(end), bounds[0]), bounds[1]) for end in (low, high))
    return ends[0], ends[1]


def _combined(hulls: Sequence[tuple[float, float]], weights: FloatArray) -> tuple[float, float]:
    """Parts with their weights. Doubts about models do not average out, so ends are added."""
    lows, highs = np.array(hulls).T
    return float(weights @ lows), float(weights @ highs)


def _frequency_intervals(tiers: list[JointAnalysis], weights: FloatArray) -> dict[str, Any]:
    """A 95 % interval for the frequency of each category."""
    names = tiers[0].summary.plan.categories
    if names is None:
        return {}
    found = {}
    for place, name in enumerate(names):
        unit = (np.arange(len(names)) == place).astype(np.float64)
        low, high = _combined([tier.intervals.mean(unit) for tier in tiers], weights)
        found[name] = [max(low, 0.0), min(high, 1.0)]
    return {"frequency_intervals": found}


def _byzantine(summary: Summary, tiers: list[JointAnalysis]) -> Byzantine:
    """γ̂ over all users, with its interval and the main tier's poison."""
    users = np.array([tier.counts.users.sum() for tier in tiers])
    weights = users / users.sum()
    return Byzantine(
        float(weights @ [tier.share for tier in tiers]),
        interval=_combined([tier.intervals.share() for tier in tiers], weights),
        histogram=tiers[0].histogram(),
        **place_of(summary, [tier.place() for tier in tiers]),
    )
