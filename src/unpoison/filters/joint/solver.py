"""A primal-dual interior-point method for the joint likelihood (docs/method.md, The algorithm).

The log-likelihood is maximised over histograms x ≥ 0 that sum to 1, over the honest shares a_t, and
over the weights w ≥ 0 of the poison. The duality gap certifies how near the maximum is.
"""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import PoisonModel
from unpoison.filters.joint.point import Point
from unpoison.filters.joint.scoring import ScoringStep
from unpoison.filters.step_to_bound import step_within_bounds
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where the solver stopped, with the step that it would take next.

    >>> from unpoison import Plan, simulate
    >>> import numpy as np
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, [0, 1])
    >>> solution = maximise_likelihood(counts, PoisonModel.nobody(2, 64), most_steps=200)
    >>> solution.converged, solution.steps < 20
    (True, True)
    """

    point: Point
    next_step: ScoringStep
    steps: int
    converged: bool


def maximise_likelihood(counts: JointCounts, model: PoisonModel, most_steps: int) -> Maximum:
    """Scoring steps from an even start, until the gap is that of the last barrier.

    >>> from unpoison import Plan, simulate
    >>> import numpy as np
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, [0, 1])
    >>> maximise_likelihood(counts, PoisonModel.nobody(2, 64), most_steps=3).converged
    False
    """
    point, step_length, steps = Point(counts, model), 1.0, 0
    step = ScoringStep.at(point)
    while not _converged(point, step_length) and steps < most_steps:
        step_length = _move(point, step)
        _lower_barrier(point, step_length)
        step, steps = ScoringStep.at(point), steps + 1
        if steps > constants.STEPS_BEFORE_GIVING_UP and point.counts.is_hopeless(point.deviance()):
            break
    return Maximum(point, step, steps, _converged(point, step_length))


def _move(point: Point, step: ScoringStep) -> float:
    """Go along a step, but not as far as a bound; returns the fraction of it that was gone.

    Variables and multipliers have fractions of their own, as usual for primal-dual methods.
    """
    variables = [
        (point.honest, point.honest_multipliers, step.honest),
        (point.weights, point.weight_multipliers, step.weights),
    ]
    attackers = 1 - point.honest_shares[point.bounded]
    if len(point.bounded):
        variables.append((attackers, point.share_multipliers, -step.honest_shares))
    # From z·v = μ, linearised: dz = μ/v − z − (z/v)·dv.
    multiplier_steps = [point.barrier / v - z - z / v * dv for v, z, dv in variables]
    shares = point.honest_shares[point.attacked]
    primal = min([_reach(v, dv) for v, _, dv in variables] + [_reach(shares, step.honest_shares)])
    dual = min(_reach(z, dz) for (_, z, _), dz in zip(variables, multiplier_steps, strict=True))
    point.honest = point.honest + primal * step.honest
    point.weights = point.weights + primal * step.weights
    point.honest_shares[point.attacked] += primal * step.honest_shares
    point.honest_multipliers = point.honest_multipliers + dual * multiplier_steps[0]
    point.weight_multipliers = point.weight_multipliers + dual * multiplier_steps[1]
    if len(point.bounded):
        point.share_multipliers = point.share_multipliers + dual * multiplier_steps[2]
    return min(primal, dual)


def _reach(values: FloatArray, direction: FloatArray) -> float:
    """The fraction of a direction, at most 1, that leaves all values above 0."""
    return step_within_bounds(values, direction, constants.STEP_TO_BOUND)


def _lower_barrier(point: Point, step_length: float) -> None:
    """Lower μ towards a fraction of the gap per bound, unless a bound cut the step very short."""
    if step_length <= constants.SHORT_STEP:
        return
    full = step_length > constants.FULL_STEP
    centring = constants.CENTRING_AFTER_FULL_STEP if full else constants.CENTRING_AFTER_CUT_STEP
    target = centring * point.duality_gap / point.bound_count
    lowered = min(constants.BARRIER_FALL * point.barrier, target)
    point.barrier = max(constants.LAST_BARRIER, lowered)


def _converged(point: Point, step_length: float) -> bool:
    """Whether the last barrier is reached, after a full step, with the gap that belongs to it."""
    near = point.duality_gap < constants.GAP_SLACK * constants.LAST_BARRIER * point.bound_count
    at_the_end = point.barrier <= constants.LAST_BARRIER
    return at_the_end and step_length > constants.FULL_STEP and near
