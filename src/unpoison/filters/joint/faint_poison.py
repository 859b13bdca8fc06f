"""Poison besides a fit's own: score tests of evenly spread poison in every range of buckets.

docs/method.md, Faint poison. If a share δ of the users of some groups sends values that are spread
evenly over a range of buckets, with shape s, the expected fractions change from p to p + δ(s − p).
One step of scoring from a fit, with δ as one more unknown, estimates δ and says how the honest
histogram follows. The step is a few matrix products for all ranges and sets of groups at once, so
that every one of them can be looked at where fitting each would take minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpoison.filters.joint.attacked_groups import sets_of_groups
from unpoison.filters.joint.fitting import Fit
from unpoison.filters.joint.poison_ranges import PoisonRange, coarse_ranges, range_shapes
from unpoison.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class FaintPoison:
    """Estimates of a share δ of attackers besides a fit's, by set of groups and range of buckets.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts, PoisonModel, fit
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.05, np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> faint = FaintPoison.besides(fit(counts, PoisonModel.nobody(4, 64)))
    >>> likeliest = np.unravel_index(faint.deviations.argmax(), faint.deviations.shape)
    >>> chosen = faint.ranges[likeliest[1]]
    >>> faint.sets[likeliest[0]].tolist(), chosen.low.fraction, chosen.high.fraction
    ([True, True, True, True], 0.875, 1.0)
    >>> round(float(faint.shares[likeliest]), 2)
    0.05
    """

    sets: BoolArray
    """Sets of attacked groups, all of them first."""
    ranges: Sequence[PoisonRange]
    """Ranges of poison; none for categories, each of which is a place by itself."""
    shapes: FloatArray
    """What poison in each range, or category, looks like, by group and bucket."""
    shares: FloatArray
    """The estimate of δ by set and range, which may be negative."""
    errors: FloatArray
    """Its standard error; infinite where the reports say nothing of it."""
    honest_slopes: FloatArray
    """∂x/∂δ, by set, range and entry of x."""

    @classmethod
    def besides(
        cls, fit: Fit, sets: BoolArray | None = None, ranges: Sequence[PoisonRange] | None = None
    ) -> FaintPoison:
        """All ranges in all sets of groups, or those given, each besides the poison of a fit."""
        counts = fit.point.counts
        groups, outputs = counts.counts.shape
        if sets is None:
            subsets = (attacked[None] for attacked in sets_of_groups(groups))
            sets = np.concatenate([np.ones((1, groups), dtype=bool), *subsets])
        if counts.ordered:
            ranges = coarse_ranges(outputs) if ranges is None else ranges
            shapes = range_shapes(ranges, counts)
        else:
            ranges, shapes = (), np.repeat(np.eye(outputs)[:, None], groups, axis=1)
        directions = _Directions.of(fit, shapes).in_sets(sets)
        shares, errors, slopes = directions.estimates()
        return cls(sets, ranges, shapes, shares, errors, slopes)

    @cached_property
    def deviations(self) -> FloatArray:
        """The estimates in standard errors."""
        deviations: FloatArray = self.shares / self.errors
        return deviations


@dataclass(frozen=True, eq=False)
class _Directions:
    """What δ adds to the equations of a step: one line a set (or group), one column a range."""

    fit: Fit
    by_unknowns: FloatArray
    """The information's block of δ against x and a."""
    by_weights: FloatArray
    """The same against the weights of the fit's own poison."""
    information: FloatArray
    gradient: FloatArray

    @classmethod
    def of(cls, fit: Fit, shapes: FloatArray) -> _Directions:
        """Each shape in each group by itself."""
        point, step = fit.point, fit.free_step
        groups, outputs = point.counts.counts.shape
        # By group, range and bucket of that group: s − p, and nothing for a range that is empty.
        by_group = shapes.transpose(1, 0, 2)
        changes = (by_group - fit.expected[:, None, :]) * np.any(by_group > 0, axis=2)[:, :, None]
        weighted = changes * step.precision.reshape(groups, 1, outputs)
        derivatives = step.derivatives.reshape(groups, outputs, -1)
        by_weights = np.zeros((groups, len(shapes), len(point.weights)))
        if len(point.weights):
            slopes = point.weight_slopes()
            owners, buckets = np.divmod(point.weight_rows, outputs)
            for column in range(owners.shape[1]):
                owner, weight = owners[:, column], np.arange(len(owners))
                entering = weighted[owner, :, buckets[:, column]] * slopes[:, column, None]
                by_weights[owner, :, weight] += entering
        return cls(
            fit,
            by_unknowns=weighted @ derivatives,
            by_weights=by_weights,
            information=(weighted * changes).sum(axis=2),
            gradient=(changes * step.slope.reshape(groups, 1, outputs)).sum(axis=2),
        )

    def in_sets(self, sets: BoolArray) -> _Directions:
        """The same share in all groups of a set, in place of single groups."""
        members = sets.astype(np.float64)
        return _Directions(
            self.fit,
            np.tensordot(members, self.by_unknowns, axes=1),
            np.tensordot(members, self.by_weights, axes=1),
            members @ self.information,
            members @ self.gradient,
        )

    def estimates(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """δ, its standard error, and ∂x/∂δ: a step with one more unknown, the others eliminated."""
        step, of_weights = self.fit.free_step, self.fit.point.fixed_sums[1]
        scaled = self.by_weights * step.weight_variance
        by_others = self.by_unknowns - scaled @ step.weight_cross
        by_others = np.concatenate([by_others, -(scaled @ of_weights.T)], axis=2)
        following = by_others @ step.inverse
        information = self.information - (scaled * self.by_weights).sum(axis=2)
        left = information - (following * by_others).sum(axis=2)
        # What rounding leaves of a direction that the other unknowns can imitate tells nothing.
        known = left > np.sqrt(np.finfo(float).eps) * self.information.max()
        gradient = self.gradient - scaled @ step.weight_gradient + by_others @ step.solution
        left = np.where(known, left, 1.0)
        shares = np.where(known, -gradient / left, 0.0)
        errors = np.where(known, 1 / np.sqrt(left), np.inf)
        return shares, errors, -following[:, :, : self.fit.point.counts.inputs]
