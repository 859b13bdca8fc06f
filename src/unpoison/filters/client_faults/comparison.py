"""Models of broken clients, fitted and compared with models of the poison by the same score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from unpoison.filters.client_faults import constants
from unpoison.filters.client_faults.broken_mechanism import BrokenMechanism, Users
from unpoison.filters.client_faults.broken_transitions import (
    BrokenTransitions,
    least_deviance,
    transition_of,
)
from unpoison.filters.client_faults.hypotheses import Hypothesis
from unpoison.filters.client_faults.user_scatter import UserScatter
from unpoison.filters.joint import Fit, JointCounts, PoisonModel, fit
from unpoison.filters.joint import constants as joint_constants
from unpoison.filters.joint.point_values import with_point_values
from unpoison.mechanisms import Mechanism
from unpoison.system.blas import single_threaded


@dataclass(frozen=True, eq=False)
class BrokenFit:
    """The most likely share of clients with one fault, if nobody attacks.

    `hypotheses` is how many faults were tried, each as likely as another.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.client_faults.hypotheses import other_budgets
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(20_000), rng=rng, fault="legacy", faulty_fraction=0.5)
    >>> counts = JointCounts.of(run.summary, range(3))
    >>> broken = fit_broken(counts, other_budgets(plan, {1: 1.0, 2: 1.0}), 10)
    >>> bool(abs(broken.share - 0.5) < 0.05), broken.explains
    (True, True)
    """

    hypothesis: Hypothesis
    share: float
    fit: Fit
    counts: JointCounts
    hypotheses: int
    scatter: UserScatter
    users: Users

    @cached_property
    def fit_to_users(self) -> Fit:
        """The fit, with the deviance in units of what users' reports scatter."""
        degrees = self.scatter.scaled_degrees(self.fit.degrees_of_freedom - 1)
        deviance = self.fit.deviance / self.scatter.scale
        return replace(self.fit, deviance=deviance, degrees_of_freedom=degrees)

    @property
    def explains(self) -> bool:
        """Whether the goodness-of-fit test accepts it, and counts scatter as much as they should.

        Users who tell one value many times make counts scatter; if they do not, it is another
        fault.
        """
        p_value = self.fit_to_users.p_value
        too_even = (
            self.scatter.factor > constants.MOST_SCATTER
            and 1 - p_value < joint_constants.LEAST_FIT_P_VALUE
        )
        return p_value > joint_constants.LEAST_FIT_P_VALUE and not too_even

    def with_share(self, share: float) -> JointCounts:
        """The counts, if another share of the clients were broken; of a refined fit."""
        mechanisms = [
            BrokenMechanism(mechanism.healthy, mechanism.client, share, mechanism.users)
            if isinstance(mechanism, BrokenMechanism) and group in self.hypothesis.clients
            else mechanism
            for mechanism, group in zip(
                (buckets.mechanism for buckets in self.counts.buckets),
                self.counts.groups,
                strict=True,
            )
        ]
        matrices = [
            transition_of(self.counts, mechanism, index)
            for index, mechanism in enumerate(mechanisms)
        ]
        return replace(self.counts, transitions=np.stack(matrices))

    def mechanism(self, healthy: Mechanism, group: int) -> BrokenMechanism:
        """The mechanism of a group that has such clients."""
        client = self.hypothesis.clients[group]
        return BrokenMechanism(healthy, client, self.share, self.users)

    @property
    def score(self) -> float:
        """The score by which models of the poison are compared, too: deviance and penalties."""
        return self.fit.deviance + self.counts.bic_penalty + 2 * math.log(self.hypotheses)

    def is_significant(self, nobody: Fit) -> bool:
        """Whether it explains the counts better than healthy clients, beyond chance."""
        gain = max(nobody.deviance - self.fit.deviance, 0.0)
        return bool(scipy.special.chdtrc(1, gain) * self.hypotheses < constants.FALSE_ALARMS)


@single_threaded
def best_broken_fit(
    counts: JointCounts, hypotheses: Sequence[Hypothesis], most: float = math.inf
) -> BrokenFit | None:
    """The fault that explains the counts with the least deviance.

    Faults are ranked first as if broken clients had values of their own, which takes one step.
    Those whose deviance is above `most` even so are not fitted.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.client_faults.hypotheses import Hypotheses
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(20_000), rng=rng, fault="legacy", faulty_fraction=0.5)
    >>> counts = JointCounts.of(run.summary, range(3))
    >>> best_broken_fit(counts, Hypotheses(run.summary, (0, 1, 2)).all).hypothesis.detail
    {'epsilon': [1.0, 1.0]}
    """
    possible = _possible(counts, hypotheses)
    transitions = [BrokenTransitions.of(counts, hypothesis).matrices for hypothesis in possible]
    bounds = np.array([least_deviance(counts, matrices) for matrices in transitions])
    first = [rank for rank in np.argsort(bounds) if bounds[rank] < most]
    fits = [
        fit_broken(counts, possible[rank], len(hypotheses))
        for rank in first[: constants.MOST_FITTED]
    ]
    return min(fits, key=lambda broken: (not broken.explains, broken.score)) if fits else None


def _possible(counts: JointCounts, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Leave out faults of one group alone, where healthy clients do not explain the others."""
    explained = {
        group: _others_explained(counts, index) for index, group in enumerate(counts.groups)
    }
    return [
        hypothesis
        for hypothesis in hypotheses
        if len(hypothesis.clients) > 1 or explained[next(iter(hypothesis.clients))]
    ]


def _others_explained(counts: JointCounts, left_out: int) -> bool:
    others = [index for index in range(len(counts.groups)) if index != left_out]
    if not others:
        return True
    rest = replace(counts, counts=counts.counts[others], transitions=counts.transitions[others])
    parameters = rest.counts.size - len(others)
    return bool(
        scipy.special.chdtrc(parameters, least_deviance(rest, rest.transitions))
        > joint_constants.LEAST_FIT_P_VALUE
    )


def fit_broken(counts: JointCounts, hypothesis: Hypothesis, hypotheses: int) -> BrokenFit:
    """The share with the largest likelihood, and the honest histogram that belongs to it.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.client_faults.hypotheses import other_budgets
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(20_000), rng=rng, fault="legacy", faulty_fraction=0.2)
    >>> counts = JointCounts.of(run.summary, range(3))
    >>> bool(abs(fit_broken(counts, other_budgets(plan, {2: 1.0}), 10).share - 0.2) < 0.05)
    True
    """
    broken = BrokenTransitions.of(counts, hypothesis)
    share, best = _most_likely_share(counts, broken)
    users = Users(counts.values, best.honest)
    if hypothesis.is_refused(counts):
        for _ in range(constants.ACCEPTANCE_ROUNDS):
            broken = BrokenTransitions.of(counts, hypothesis, users)
            share, best = _most_likely_share(counts, broken)
            users = Users(counts.values, best.honest)
    scatter = UserScatter.of(counts, best, broken.matrices, broken.shares(share))
    return BrokenFit(hypothesis, share, best, counts, hypotheses, scatter, users)


def _most_likely_share(counts: JointCounts, broken: BrokenTransitions) -> tuple[float, Fit]:
    """The share of broken clients, and the fit of the honest histogram with it."""
    nobody = PoisonModel.nobody(*counts.counts.shape)

    def fit_with(share: float) -> Fit:
        return fit(broken.mixed(counts, share), nobody)

    inner = scipy.optimize.minimize_scalar(
        lambda share: fit_with(share).deviance,
        bounds=(0.0, constants.MOST_BROKEN),
        method="bounded",
        options={"xatol": constants.SHARE_ACCURACY},
    )
    # The search stops short of its ends.
    candidates = [(share, fit_with(share)) for share in (float(inner.x), constants.MOST_BROKEN)]
    return min(candidates, key=lambda candidate: candidate[1].deviance)


def refined(broken: BrokenFit) -> BrokenFit:
    """Fit a fault again with mechanisms of its own, and with shared values if the fit needs them.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.client_faults.hypotheses import other_budgets
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(20_000), rng=rng, fault="legacy", faulty_fraction=0.5)
    >>> counts = JointCounts.of(run.summary, range(3))
    >>> broken = refined(fit_broken(counts, other_budgets(plan, {1: 1.0, 2: 1.0}), 10))
    >>> type(broken.counts.buckets[1].mechanism).__name__, broken.explains
    ('BrokenMechanism', True)
    """
    counts, honest = honest_fit(_with_mechanisms(broken))
    return replace(broken, fit=honest, counts=counts)


def honest_fit(counts: JointCounts) -> tuple[JointCounts, Fit]:
    """The fit if nobody attacks, with counts that have values added if the fit needs them.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=4.0, low=0, high=1), np.full(200_000, 0.37)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> honest_fit(counts)[0].inputs > counts.inputs
    True
    """
    nobody = PoisonModel.nobody(*counts.counts.shape)
    honest = fit(counts, nobody)
    if honest.p_value < joint_constants.REFINEMENT_LEVEL:
        counts = with_point_values(counts, [nobody])
        honest = fit(counts, nobody)
    return counts, honest


def neighbouring_fits(broken: BrokenFit) -> tuple[Fit, ...]:
    """The fits at both ends of the 95 % interval of the share of broken clients.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.client_faults.hypotheses import other_budgets
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(20_000), rng=rng, fault="legacy", faulty_fraction=0.5)
    >>> counts = JointCounts.of(run.summary, range(3))
    >>> broken = refined(fit_broken(counts, other_budgets(plan, {1: 1.0, 2: 1.0}), 10))
    >>> len(neighbouring_fits(broken))
    2
    """

    def at(share: float) -> Fit:
        counts = broken.with_share(share)
        return fit(counts, PoisonModel.nobody(*counts.counts.shape))

    # By a parabola through the deviance, which is flat at the most likely share.
    near = constants.SHARE_STEP if broken.share < 1 / 2 else -constants.SHARE_STEP
    rise = max(at(broken.share + near).deviance - broken.fit.deviance, 0.0) / broken.scatter.scale
    reach = abs(near) * math.sqrt(
        float(scipy.special.chdtri(1, joint_constants.INTERVAL_LEVEL)) / max(rise, 1.0)
    )
    low, high = broken.share - reach, broken.share + reach
    return at(max(low, 0.0)), at(min(high, constants.MOST_BROKEN))


def _with_mechanisms(broken: BrokenFit) -> JointCounts:
    """The counts with buckets whose mechanisms are those of both kinds of clients."""
    counts, clients = broken.counts, broken.hypothesis.clients
    buckets = tuple(
        replace(group_buckets, mechanism=broken.mechanism(group_buckets.mechanism, group))
        if group in clients
        else group_buckets
        for group_buckets, group in zip(counts.buckets, counts.groups, strict=True)
    )
    mixed = replace(counts, buckets=buckets)
    matrices = [
        transition_of(counts, group_buckets.mechanism, index)
        for index, group_buckets in enumerate(buckets)
    ]
    return replace(mixed, transitions=np.stack(matrices))
