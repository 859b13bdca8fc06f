"""Whether somebody attacks, and what an attacker could do without being noticed."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from scipy.optimize import linprog
from scipy.stats import chi2

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.solver import Fit, fit
from unpoison.mechanisms import CategoricalMechanism
from unpoison.types import FloatArray

REPLICATES = 40
MORE_REPLICATES = 200
FEW = 100
CERTAIN = 1e-6
LEVEL = 0.05


def nobody_p_value(counts: JointCounts, nobody: Fit, seed: int = 0) -> float:
    """How likely counts are that honest users explain as badly, if all users are honest.

    The deviance is χ² with as many degrees of freedom as it has on average. These are found by
    fitting collections of users drawn from the honest fit: x̂ ≥ 0 makes a count of parameters too
    rough. With few buckets the variance is taken from them too.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import Poison
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> for attack in ("none", "point:C"):
    ...     run = simulate(plan, values, attack, 0.05, np.random.default_rng(1))
    ...     counts = JointCounts.of(run.summary, range(4))
    ...     print(nobody_p_value(counts, fit(counts, Poison.nobody(4, 64))) < 0.05)
    False
    True
    """
    if nobody.p_value < CERTAIN:
        return nobody.p_value
    rng, few = np.random.default_rng(seed), counts.counts.size <= FEW
    number = MORE_REPLICATES if few else REPLICATES
    drawn = (counts.drawn(nobody.honest, rng) for _ in range(number))
    again = np.array([fit(each, nobody.model).deviance for each in drawn])
    # Reports of one user are alike, which shows where there are few buckets: a scaled χ² then.
    scale = again.var() / (2 * again.mean()) if few else 1.0
    return float(chi2.sf(nobody.deviance / scale, again.mean() / scale))


def hidden_range(
    counts: JointCounts, found: Fit, share: float, values: FloatArray
) -> tuple[float, float]:
    """All honest means that attackers of a given share could hide behind the honest part of a fit.

    Honest users with the histogram a/(1 − γ), and poison y ≥ 0 of a total γ, look exactly as the
    fit expects if M_t a + y_t = M_t x in all groups: any a with M_t a ≤ M_t x will do. Noise hides
    a little more: the room is such that a test at 5 % finds it in half of the collections. The
    least and the largest mean are found by linear programs.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import Poison
    >>> plan, rng = Plan.new(epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.5), rng=rng)
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> low, high = hidden_range(counts, fit(counts, Poison.nobody(4, 64)), 0.1, counts.values)
    >>> low < -0.1 < 0.1 < high
    True
    """
    looks = counts.transitions @ found.honest
    rows, limits = counts.rows, (looks + _room(counts, looks)).ravel()
    total = np.ones((1, counts.inputs))

    def most(direction: FloatArray) -> float:
        solved = linprog(-direction, rows, limits, total, [1 - share], method="highs")
        return math.nan if solved.x is None else float(direction @ solved.x) / (1 - share)

    return -most(-values), most(values)


def hidden_frequency(counts: JointCounts, found: Fit, share: float) -> float:
    """The largest shift of any frequency that attackers of a given share could hide.

    With k-RR, M_t a ≤ M_t x bounds each a_k by itself: by x_k + γ·other_t/(kept_t − other_t), and a
    little more for noise. The least of these, over the groups, holds.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import Poison
    >>> plan, rng = Plan.new("k-rr", 1.0, categories=["a", "b"]), np.random.default_rng(1)
    >>> run = simulate(plan, np.tile(["a", "b"], 10_000), rng=rng)
    >>> counts = JointCounts.of(run.summary, range(5))
    >>> nobody = fit(counts, Poison.nobody(5, 2))
    >>> 0.05 < hidden_frequency(counts, nobody, 0.1) < hidden_frequency(counts, nobody, 0.2)
    True
    """
    parts = [cast(CategoricalMechanism, each.mechanism) for each in counts.buckets]
    other = np.array([part.other for part in parts])[:, None]
    apart = np.array([part.kept for part in parts])[:, None] - other
    room = _room(counts, counts.transitions @ found.honest)
    slack = ((share * other + room) / apart).min(axis=0)
    most = np.minimum(found.honest + slack, 1 - share)
    least = np.maximum(1 - share - (most.sum() - most), 0.0)
    return float(np.abs(np.stack([most, least]) / (1 - share) - found.honest).max())


def _room(counts: JointCounts, looks: FloatArray) -> FloatArray:
    """By how much each bucket may be off before a test would notice."""
    room: FloatArray = _unnoticed(counts) * np.sqrt(looks / counts.reports[:, None])
    return room


def _unnoticed(counts: JointCounts) -> float:
    """By how many standard deviations every bucket may be off before a test would notice."""
    degrees = counts.counts.size - len(counts.reports)
    excess = chi2.isf(LEVEL, degrees) - degrees
    return math.sqrt(excess / counts.counts.size)
