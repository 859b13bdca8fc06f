"""An interior-point method for the joint likelihood, with a certificate of how near it came.

The expected share of a report in bucket i of group t is p_ti = a_t (M_t x)_i + y_ti: an honest part
that all groups share up to its size a_t = 1 − γ_t, and poison. The likelihood is maximised over
histograms x ≥ 0 that sum to 1, over the a_t, and over the numbers w ≥ 0 that describe y. Steps are
those of Fisher scoring with a logarithmic barrier for every bound, primal and dual. Each of the w
enters one bucket of a group, so they are eliminated from the equations of a step: what is left has
an unknown for each input bucket and each group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import chi2

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import ALIKE, EVEN, OWN, Poison
from unpoison.system.blas import single_threaded
from unpoison.types import FloatArray, IntArray

FIRST_BARRIER = 100.0
LAST_BARRIER = 1e-4
MOST_STEPS = 200
TO_THE_BOUND = 0.995
PATIENCE = 20
HOPELESS = 100.0
"""A deviance, in buckets, that no noise explains."""
FIRST_SHARE = 0.2
FIRST_NOISE = 0.02
"""Near nobody: from far away, noise could seem to be all there is."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The most likely histograms under one model of the poison.

    `gap` bounds by how much the log-likelihood could still rise; `honest_covariance` is that of x,
    `share_covariance` that of the shares of attackers, both with all other unknowns free.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> found = fit(JointCounts.of(run.summary, [0, 1]), Poison.nobody(2, 64))
    >>> found.converged, found.gap < 0.1, bool(found.p_value > 0.01)
    (True, True, True)
    """

    model: Poison
    honest: FloatArray
    shares: FloatArray
    poison: FloatArray
    expected: FloatArray
    deviance: float
    degrees: float
    steps: int
    gap: float
    converged: bool
    honest_covariance: FloatArray
    share_covariance: FloatArray

    @property
    def p_value(self) -> float:
        """How likely counts are that fit as badly, if the model is true (χ²)."""
        return float(chi2.sf(self.deviance, max(self.degrees, 1.0)))

    def mean(self, values: FloatArray) -> float:
        """The honest mean."""
        return float(self.honest @ values)

    def deviation(self, values: FloatArray) -> float:
        """The standard error of the honest mean."""
        variance = float(values @ self.honest_covariance @ values)
        return math.sqrt(max(variance, 0.0))


@single_threaded
def fit(counts: JointCounts, model: Poison, most_steps: int = MOST_STEPS) -> Fit:
    """Maximise the likelihood under a model.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), "point:C", 0.2, np.random.default_rng(1))
    >>> last = np.arange(64) == 63
    >>> found = fit(JointCounts.of(run.summary, [0, 1]), Poison.alike(last, 2))
    >>> bool(np.allclose(found.shares, 0.2, atol=0.01))
    True
    """
    found = _maximised(counts, model, most_steps)
    if model.kind == EVEN:
        # The likelihood may have a second peak, at nothing but noise.
        without = _maximised(counts, Poison.nobody(*counts.counts.shape), most_steps)
        if without.deviance < found.deviance:
            return replace(without, model=model)
    return found


def _maximised(counts: JointCounts, model: Poison, most_steps: int) -> Fit:
    state, steps = _State(counts, model), 0
    step = state.step()
    while not state.done and steps < most_steps:
        state.move(step)
        step, steps = state.step(), steps + 1
        if steps > PATIENCE and state.hopeless:
            break
    return state.fit(step, steps)


@dataclass(frozen=True, eq=False)
class _Step:
    """A direction, and the system that it solves."""

    honest: FloatArray
    kept: FloatArray
    numbers: FloatArray
    covariance: FloatArray
    mixed: FloatArray
    inverse: FloatArray
    weights: FloatArray
    slopes: FloatArray


class _State:
    """Where the method is: x, a and w, with the multipliers of their bounds."""

    def __init__(self, counts: JointCounts, model: Poison) -> None:
        self.counts, self.model = counts, model
        groups, inputs = len(counts.reports), counts.inputs
        self.attacked = np.flatnonzero(model.attacked)
        self.honest = np.full(inputs, 1 / inputs)
        share = FIRST_NOISE if model.kind == EVEN else FIRST_SHARE
        self.kept = np.where(model.attacked, 1 - share, 1.0)
        self.numbers = model.start(share)
        self.barrier = FIRST_BARRIER
        self.honest_bound = self.barrier / self.honest
        self.number_bound = self.barrier / self.numbers
        # Own poison is positive only if a < 1; shared poison needs a bound of its own for that.
        self.bounded = self.attacked if model.shared else self.attacked[:0]
        self.share_bound = self.barrier / (1 - self.kept[self.bounded])
        self.rates = np.repeat(counts.reports, counts.counts.shape[1])
        self.group_of = np.repeat(np.arange(groups), counts.counts.shape[1])
        self.mine = self.group_of[:, None] == self.attacked
        self.stacked = counts.rows
        self.length = 1.0

    @cached_property
    def rows(self) -> IntArray:
        """The rows (group and bucket) that poison enters, one line a number, one column a group."""
        groups, outputs = self.model.places.shape
        if self.model.kind == ALIKE:
            rows: IntArray = self.model.columns[:, None] + outputs * np.arange(groups)
            return rows
        return np.flatnonzero(self.model.places)[:, None]

    @property
    def poison_shape(self) -> FloatArray:
        """Shared poison as fractions of all poison; 0 where each group has its own."""
        groups, outputs = self.model.places.shape
        if not self.model.shared:
            return np.zeros(groups * outputs)
        return self.model.spread(self.numbers, np.ones(groups)).ravel()

    def honest_rows(self) -> FloatArray:
        """What honest users alone would give, row by row."""
        rows: FloatArray = self.stacked @ self.honest
        return rows

    def expected(self, honest_rows: FloatArray | None = None) -> FloatArray:
        """p, row by row."""
        honest = self.honest_rows() if honest_rows is None else honest_rows
        poison = self.model.spread(self.numbers, 1 - self.kept).ravel()
        mixture: FloatArray = self.kept[self.group_of] * honest + poison
        return mixture

    def step(self) -> _Step:
        """Solve for the next direction."""
        honest = self.honest_rows()
        expected = self.expected(honest)
        weights = self.rates / expected
        slope = self.rates - self.counts.counts.ravel() / expected
        slopes = self._slopes(honest)
        first, second = slopes.T @ slope, slopes.T @ (weights[:, None] * slopes)
        self._bound(first, second)
        self._scatter(first, second)
        mixed, own, inverse = self._eliminated(weights, slope, slopes)
        bent = inverse[:, None] * mixed
        system, right = self._system(first, second, mixed, own, inverse, bent)
        # Scaling by x keeps the equations well conditioned where x is nearly 0.
        scale = np.ones(len(right))
        scale[: len(self.honest)] = self.honest
        solved = np.linalg.inv(system * scale[:, None] * scale)
        covariance = solved * scale[:, None] * scale
        solution = covariance @ right
        size = slopes.shape[1]
        along = solution[:size]
        pull = self.constraints[1].T @ solution[size:]
        inputs = len(self.honest)
        return _Step(
            honest=along[:inputs],
            kept=along[inputs:],
            numbers=-(own + mixed @ along + pull) * inverse,
            covariance=covariance[:size, :size],
            mixed=mixed,
            inverse=inverse,
            weights=weights,
            slopes=slopes,
        )

    def _slopes(self, honest: FloatArray) -> FloatArray:
        """The derivatives of p by x and by the a of attacked groups."""
        by_honest = self.kept[self.group_of][:, None] * self.stacked
        apart = honest - self.poison_shape
        return np.concatenate([by_honest, np.where(self.mine, apart[:, None], 0.0)], axis=1)

    def _bound(self, first: FloatArray, second: FloatArray) -> None:
        """The barriers of x, of a, and of 1 − a."""
        inputs = len(self.honest)
        diagonal = np.arange(inputs)
        first[:inputs] -= self.barrier / self.honest
        second[diagonal, diagonal] += self.honest_bound / self.honest
        places, kept = np.arange(inputs, len(first)), self.kept[self.attacked]
        # Without a barrier of its own at 0, a step that goes there ends all further ones.
        first[inputs:] -= self.barrier / kept
        second[places, places] += self.barrier / kept**2
        if len(self.bounded):
            room = 1 - self.kept[self.bounded]
            first[inputs:] += self.barrier / room
            second[places, places] += self.share_bound / room

    def _scatter(self, first: FloatArray, second: FloatArray) -> None:
        """Random groups: the share of attackers in n users scatters by γ(1 − γ)/n."""
        if not len(self.attacked):
            return
        users, shares = self.counts.users[self.attacked], 1 - self.kept[self.attacked]
        centre = users @ shares / users.sum()
        spread = max(centre * (1 - centre), 1 / self.counts.users.sum()) / users
        apart = np.eye(len(users)) - users / users.sum()
        stiff = apart.T @ (apart / spread[:, None])
        inputs = len(self.honest)
        second[inputs:, inputs:] += stiff
        first[inputs:] -= stiff @ shares

    def _eliminated(
        self, weights: FloatArray, slope: FloatArray, slopes: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The poison's numbers: how they mix with the others, their slope, 1/curvature."""
        if not self.model.variables:
            return np.empty((0, slopes.shape[1])), np.empty(0), np.empty(0)
        strength = self._strength()
        pulled = strength * weights[self.rows]
        mixed = np.einsum("wr,wrv->wv", pulled, slopes[self.rows])
        own = (strength * slope[self.rows]).sum(axis=1) - self.barrier / self.numbers
        curved = (strength * pulled).sum(axis=1) + self.number_bound / self.numbers
        return mixed, own, 1 / curved

    def _strength(self) -> FloatArray:
        """By how much p changes with a number, in each of its rows."""
        if self.model.kind == ALIKE:
            return np.broadcast_to(1 - self.kept, self.rows.shape)
        return np.ones(self.rows.shape)

    @cached_property
    def constraints(self) -> tuple[FloatArray, FloatArray]:
        """Sums that must be 1: those of x; of shared poison; of a and own poison in each group.

        Two matrices, a row for each sum: one for x and a, one for the poison's numbers.
        """
        inputs, groups, numbers = len(self.honest), len(self.attacked), self.model.variables
        of_honest = np.concatenate([np.ones(inputs), np.zeros(groups)])
        by_others, by_numbers = [of_honest], [np.zeros(numbers)]
        if self.model.kind == ALIKE:
            by_others.append(np.zeros(inputs + groups))
            by_numbers.append(np.ones(numbers))
        if self.model.kind == OWN:
            owner = np.nonzero(self.model.places)[0]
            by_others.extend(np.eye(inputs + groups)[inputs:])
            by_numbers.extend((owner == group).astype(np.float64) for group in self.attacked)
        return np.array(by_others), np.array(by_numbers)

    def _system(
        self,
        first: FloatArray,
        second: FloatArray,
        mixed: FloatArray,
        own: FloatArray,
        inverse: FloatArray,
        bent: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The equations of a step for x, a and the multipliers of the sums."""
        by_others, by_numbers = self.constraints
        others = np.concatenate([self.honest, self.kept[self.attacked]])
        rests = by_others @ others + by_numbers @ self.numbers - 1
        held = by_numbers * inverse
        across = by_others - held @ mixed
        system = np.block([[second - mixed.T @ bent, across.T], [across, -(held @ by_numbers.T)]])
        return system, np.concatenate([bent.T @ own - first, held @ own - rests])

    def move(self, step: _Step) -> None:
        """Go along, but not into a bound; then lower the barrier."""
        pairs = [
            (self.honest, self.honest_bound, step.honest),
            (self.numbers, self.number_bound, step.numbers),
        ]
        room = 1 - self.kept[self.bounded]
        if len(self.bounded):
            pairs.append((room, self.share_bound, -step.kept))
        turned = [self.barrier / v - z - z / v * dv for v, z, dv in pairs]
        kept = self.kept[self.attacked]
        primal = min([_reach(v, dv) for v, _, dv in pairs] + [_reach(kept, step.kept)])
        dual = min(_reach(z, dz) for (_, z, _), dz in zip(pairs, turned, strict=True))
        self.honest = self.honest + primal * step.honest
        self.numbers = self.numbers + primal * step.numbers
        self.kept[self.attacked] += primal * step.kept
        self.honest_bound = self.honest_bound + dual * turned[0]
        self.number_bound = self.number_bound + dual * turned[1]
        if len(self.bounded):
            self.share_bound = self.share_bound + dual * turned[2]
        self.length = min(primal, dual)
        self._lower()

    def _lower(self) -> None:
        if self.length > 0.3:
            centre = (0.1 if self.length > 0.9 else 0.3) * self.gap / self.bounds
            self.barrier = max(LAST_BARRIER, min(0.2 * self.barrier, centre))

    @property
    def bounds(self) -> int:
        """How many bounds there are."""
        return len(self.honest) + len(self.numbers) + len(self.bounded)

    @property
    def gap(self) -> float:
        """By how much the likelihood could still rise, were it not for the bounds' barriers."""
        gap = self.honest @ self.honest_bound + self.numbers @ self.number_bound
        return float(gap + (1 - self.kept[self.bounded]) @ self.share_bound)

    @property
    def done(self) -> bool:
        """At the last barrier, with full steps."""
        near = self.gap < 2 * LAST_BARRIER * self.bounds
        return self.barrier <= LAST_BARRIER and self.length > 0.9 and near

    @property
    def hopeless(self) -> bool:
        """Whether the counts are so far from the model that no exact answer is of use."""
        expected = self.expected().reshape(self.counts.counts.shape)
        return self.counts.deviance(expected) > HOPELESS * self.counts.counts.size

    def fit(self, step: _Step, steps: int) -> Fit:
        """What was found."""
        shape, inputs = self.counts.counts.shape, len(self.honest)
        expected = self.expected().reshape(shape)
        groups = len(self.counts.reports)
        covariance = np.zeros((groups, groups))
        covariance[np.ix_(self.attacked, self.attacked)] = step.covariance[inputs:, inputs:]
        return Fit(
            model=self.model,
            honest=self.honest,
            shares=1 - self.kept,
            poison=self.model.spread(self.numbers, 1 - self.kept),
            expected=expected,
            deviance=self.counts.deviance(expected),
            degrees=self._degrees(step),
            steps=steps,
            gap=self.gap,
            converged=self.done,
            honest_covariance=step.covariance[:inputs, :inputs],
            share_covariance=covariance,
        )

    def _degrees(self, step: _Step) -> float:
        """Free buckets, less the leverage of the counts on what is expected of them.

        The shares of attacked groups scatter about one, so all but one are hardly free.
        """
        moved, spare = step.slopes.copy(), np.zeros(len(self.rates))
        if self.model.variables:
            strength = self._strength()
            follow = strength[:, :, None] * (step.inverse[:, None] * step.mixed)[:, None, :]
            np.subtract.at(moved, self.rows, follow)
            np.add.at(spare, self.rows, strength**2 * step.inverse[:, None])
        leverage = step.weights * (spare + np.einsum("rv,vu,ru->r", moved, step.covariance, moved))
        groups, outputs = self.counts.counts.shape
        scattered = max(len(self.attacked) - 1, 0)
        return float(groups * (outputs - 1) - leverage.sum() + scattered)


def _reach(values: FloatArray, direction: FloatArray) -> float:
    """How far one can go before a value reaches 0."""
    falling = direction < 0
    if not falling.any():
        return 1.0
    return min(1.0, TO_THE_BOUND * float((-values[falling] / direction[falling]).min()))
