"""The joint filter's verdict: who attacks, the number without them, and what cannot be known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unpoison.estimate import BlindSpot, Byzantine
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.protocols.trust import Trust
from unpoison.protocols.verdict import NAMED, listed, readable

ENDS = {"right": "towards the upper end", "left": "towards the lower end"}
MODELS = {
    "nobody": "nobody attacks",
    "even": "some users send noise",
    "alike": "some users send the same kind of values in all groups",
    "own": "some users send values that differ from group to group",
}


def joint_verdict(
    tiers: Sequence[JointAnalysis],
    answer: dict[str, Any],
    byzantine: Byzantine,
    interval: tuple[float, float] | None,
    trusted: Trust,
    blind: BlindSpot,
) -> str:
    """What a person should take from the estimate.

    >>> import numpy as np
    >>> from unpoison import Plan, estimate, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(20_000, 0.3), "point:C", 0.3, rng)
    >>> " % of users send values towards the upper end" in estimate(run.summary).verdict
    True
    """
    parts = [
        _found(tiers, answer, byzantine, interval, trusted),
        _doubt(tiers),
        _unseen(tiers[0], blind),
    ]
    return " ".join(part for part in parts if part)


def _found(
    tiers: Sequence[JointAnalysis],
    answer: dict[str, Any],
    byzantine: Byzantine,
    interval: tuple[float, float] | None,
    trusted: Trust,
) -> str:
    if any(tier.outvoted for tier in tiers):
        return (
            f"{_share(byzantine)} of users seem to be attackers. No method can tell the honest "
            "ones apart then: do not use the answer."
        )
    if not byzantine.fraction > 0:
        calm = f"Nobody seems to attack (p = {_lowest(tiers):.2g}). "
        fits = all(tier.choice.fits for tier in tiers)
        return (calm if fits else "") + _number(tiers, answer, interval)
    where = _where(byzantine)
    return f"About {_share(byzantine)} of users send {where}. " + _without(
        tiers, answer, byzantine, interval, trusted
    )


def _share(byzantine: Byzantine) -> str:
    return f"{100 * byzantine.fraction:.1f} %"


def _where(byzantine: Byzantine) -> str:
    if byzantine.categories is not None:
        return f"made-up reports of {listed(byzantine.categories)}"
    return f"values {ENDS.get(byzantine.side, 'on both sides')}"


def _number(
    tiers: Sequence[JointAnalysis], answer: dict[str, Any], interval: tuple[float, float] | None
) -> str:
    if interval is None:
        return "The frequencies need no filter."
    return f"The mean is {_with_interval(tiers, answer, interval)}."


def _with_interval(
    tiers: Sequence[JointAnalysis], answer: dict[str, Any], interval: tuple[float, float]
) -> str:
    value, low, high = (readable(each, tiers[0].summary) for each in (answer["mean"], *interval))
    return f"{value} (95 %: {low} to {high})"


def _without(
    tiers: Sequence[JointAnalysis],
    answer: dict[str, Any],
    byzantine: Byzantine,
    interval: tuple[float, float] | None,
    trusted: Trust,
) -> str:
    if interval is not None:
        plain = readable(trusted.mean, tiers[0].summary)
        mean = _with_interval(tiers, answer, interval)
        return f"The mean without them is {mean}; with them it would be {plain}."
    plain_ones = trusted.frequencies or {}
    told = "; ".join(
        f"“{name}” has {100 * answer['frequencies'][name]:.1f} % without them, "
        f"{100 * plain_ones[name]:.1f} % with them"
        for name in (byzantine.categories or ())[:NAMED]
    )
    return f"{told}." if told else ""


def _lowest(tiers: Sequence[JointAnalysis]) -> float:
    """The p-value of the most suspicious tier, for as many tests as there are tiers."""
    return min(1.0, len(tiers) * min(tier.p_value for tier in tiers))


def _doubt(tiers: Sequence[JointAnalysis]) -> str:
    """Where no model fits, or the data cannot tell models apart."""
    if any(not tier.choice.fits for tier in tiers):
        return (
            "No model explains the reports: somebody attacks in a way that this filter does not "
            "know, or reports are not what the plan says. The interval is widened; do not rely on "
            "the number."
        )
    kinds = dict.fromkeys(kind for tier in tiers for kind in tier.other_kinds)
    if not kinds:
        return ""
    told = " or that ".join(MODELS[kind] for kind in kinds)
    most = max(tier.share_hull()[1] for tier in tiers)
    return (
        f"The data cannot rule out that {told} (at most {100 * most:.1f} % attackers); intervals "
        "allow for that."
    )


def _unseen(tier: JointAnalysis, blind: BlindSpot) -> str:
    """What nobody could see."""
    share = f"{100 * blind.share:.3g} %"
    if tier.summary.plan.categorical:
        return (
            f"Attackers who imitate honest reports cannot be seen: {share} of users could move a "
            f"frequency by up to {100 * blind.shift:.1f} percentage points."
        )
    shift = readable(blind.shift, tier.summary)
    return (
        f"Attackers who imitate honest reports cannot be seen: {share} of users could move the "
        f"mean by up to {shift}."
    )
