"""Counts c_ti of all groups in common buckets, and transitions M_t (docs/method.md, The model)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from unpoison.errors import NotEnoughData
from unpoison.filters.buckets import MIN_REPORTS, Buckets
from unpoison.filters.joint import constants
from unpoison.mechanisms import Mechanism
from unpoison.plan import Plan
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class JointCounts:
    """Counts by group and bucket, with the transition of each group.

    Bucket i lies at the same relative position of every group's report domain. Groups are drawn at
    random, so all share one honest histogram x; `transitions[t] @ x` is what honest users of group
    t report. Of numbers, either end of the range is an input value by itself, after the buckets. If
    the plan has a step, x has one entry for each value that users can have, unless these are many.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> counts.counts.shape, counts.transitions.shape, float(counts.reports[0])
    ((4, 64), (4, 64, 66), 10000.0)
    >>> plan = Plan.new(epsilon=1.0, low=1, high=5, step=1)
    >>> run = simulate(plan, np.full(20_000, 4), rng=np.random.default_rng(1))
    >>> JointCounts.of(run.summary, range(4)).values.tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """

    groups: tuple[int, ...]
    """Numbers of the groups in the plan, in the order of the rows."""
    buckets: tuple[Buckets, ...]
    transitions: FloatArray
    """M_t by group, output bucket and input value."""
    values: FloatArray
    """The value of each entry of x, in the mechanism's input domain."""
    counts: FloatArray
    """c_ti by group and output bucket."""
    users: FloatArray
    """n_t: the users of each group."""
    reports_per_user: IntArray
    """The reports that one user of each group sends."""
    bucket_inputs: int
    """How many entries of x, from the first, are buckets; all others are single values."""

    @classmethod
    def of(
        cls,
        summary: Summary,
        groups: Sequence[int],
        mechanisms: Sequence[Mechanism] | None = None,
        most_buckets: int | None = None,
    ) -> JointCounts:
        """Those of the groups that have enough reports.

        `mechanisms` are all groups' of the plan, or others that reports may have been made by.
        """
        present = tuple(group for group in groups if summary.reports[group] >= MIN_REPORTS)
        if not present:
            raise NotEnoughData(f"a group needs at least {MIN_REPORTS} reports; none has them")
        fewest_reports = int(summary.reports[list(present)].min())
        all_mechanisms = summary.plan.group_mechanisms if mechanisms is None else mechanisms
        buckets = tuple(
            _buckets(all_mechanisms[group], fewest_reports, most_buckets) for group in present
        )
        counts = cls(
            groups=present,
            buckets=buckets,
            transitions=np.stack([of_group.transition.dense() for of_group in buckets]),
            values=buckets[0].input_values,
            counts=np.stack(
                [
                    of_group.count(summary.counts[group])
                    for of_group, group in zip(buckets, present, strict=True)
                ]
            ),
            users=summary.users[list(present)].astype(np.float64),
            reports_per_user=np.array(
                [summary.plan.all_groups[group].reports for group in present]
            ),
            bucket_inputs=buckets[0].inputs,
        )
        return counts._with_single_values(summary.plan)

    def _with_single_values(self, plan: Plan) -> JointCounts:
        """With categories, or the few values of a plan with a step, for buckets; or with ends."""
        mechanism = self.buckets[0].mechanism
        if mechanism.categorical:
            return replace(self, bucket_inputs=0)
        if plan.steps is not None and plan.steps < constants.MOST_LATTICE_VALUES:
            values = np.linspace(mechanism.input_low, mechanism.input_high, plan.steps + 1)
            transitions = self.transitions_from(values)
            return replace(self, transitions=transitions, values=values, bucket_inputs=0)
        return self.with_inputs(self.transitions_from(self._ends), self._ends)

    @property
    def _ends(self) -> FloatArray:
        """The two ends of the range, where values beyond it are moved."""
        mechanism = self.buckets[0].mechanism
        return np.array([mechanism.input_low, mechanism.input_high])

    def transitions_from(self, values: FloatArray) -> FloatArray:
        """Transitions from single values, by group, output bucket and value: exact, no average."""
        by_group = [
            of_group.mechanism.cell_probabilities(values, of_group.output_edges).T
            for of_group in self.buckets
        ]
        return np.stack(by_group)

    def extreme_values(self) -> FloatArray:
        """Values such that reports of any honest users look like those of users of these alone.

        Between neighbours all transitions are linear, so that a user there looks like a mixture of
        the two.
        """
        kinks = [of_group.mechanism.kinks(of_group.output_edges) for of_group in self.buckets]
        values: FloatArray = np.unique(np.concatenate(kinks))
        return values

    @property
    def has_point_values(self) -> bool:
        """Whether single values were added to buckets and ends."""
        return self.bucket_inputs > 0 and self.inputs > self.bucket_inputs + len(self._ends)

    @cached_property
    def reports(self) -> FloatArray:
        """N_t: the reports of each group."""
        totals: FloatArray = self.counts.sum(axis=1)
        return totals

    @cached_property
    def observed(self) -> FloatArray:
        """c_ti / N_t: each bucket's fraction of its group's reports."""
        fractions: FloatArray = self.counts / self.reports[:, None]
        return fractions

    @cached_property
    def noise(self) -> FloatArray:
        """Standard deviation of each observed fraction; of an empty bucket, that of one report."""
        reports = self.reports[:, None]
        deviations: FloatArray = np.sqrt(np.maximum(self.observed, 1 / reports) / reports)
        return deviations

    @cached_property
    def saturated_log_likelihood(self) -> float:
        """Log-likelihood of the model that expects exactly the observed fractions."""
        return float(scipy.special.xlogy(self.counts, self.observed).sum())

    @property
    def stacked_transitions(self) -> FloatArray:
        """All M_t below one another: a row for each bucket of each group."""
        return self.transitions.reshape(-1, self.inputs)

    @property
    def inputs(self) -> int:
        """Length of x: input buckets, and single values that users may have."""
        return int(self.transitions.shape[2])

    @property
    def ordered(self) -> bool:
        """Whether buckets have neighbours: those of numbers have, categories have none."""
        return not self.buckets[0].mechanism.categorical

    def with_inputs(self, transitions: FloatArray, values: FloatArray) -> JointCounts:
        """The same counts with further values in x, and the transitions from these."""
        joined = np.concatenate([self.transitions, transitions], axis=2)
        return replace(self, transitions=joined, values=np.concatenate([self.values, values]))

    def with_noise(self, share: float) -> JointCounts:
        """The same counts if that share of users sends noise: M'_t = (1 − γ)M_t + γ/d'."""
        noise = share / self.counts.shape[1]
        return replace(self, transitions=(1 - share) * self.transitions + noise)

    @property
    def bic_penalty(self) -> float:
        """Cost of a parameter in deviance (BIC): ln n. The sample is users, not their reports."""
        return math.log(max(float(self.users.sum()), math.e))

    def deviance(self, expected: FloatArray) -> float:
        """Twice the log-likelihood by which expected fractions p fall short of the observed."""
        log_likelihood = float(scipy.special.xlogy(self.counts, expected).sum())
        return 2 * (self.saturated_log_likelihood - log_likelihood)

    def is_hopeless(self, deviance: float) -> bool:
        """Whether a model is so far from the counts that fitting it exactly is of no use."""
        return deviance > constants.HOPELESS_DEVIANCE * self.counts.size

    def precision(self, expected: FloatArray) -> FloatArray:
        """N_t / p_ti: 1/variance of each observed fraction, where p is expected."""
        precision: FloatArray = self.reports[:, None] / expected
        return precision

    def user_weights(self, groups: BoolArray) -> FloatArray:
        """Each group's share of the users of some groups; 0 for the others, or if there is none."""
        users = np.where(groups, self.users, 0.0)
        weights: FloatArray = users / max(float(users.sum()), 1.0)
        return weights

    def draw(
        self, honest: FloatArray, rng: np.random.Generator, poison: FloatArray | None = None
    ) -> JointCounts:
        """A random collection of as many users, with honest histogram x and poison y_t.

        All reports of an honest user are about one value, so users are drawn first and then their
        reports: reports drawn one by one would scatter less. `poison` is a fraction of the
        reports, by group and bucket.
        """
        poison = np.zeros(self.counts.shape) if poison is None else poison
        counts = []
        for group, users in enumerate(self.users):
            repeats, attackers = (
                int(self.reports_per_user[group]),
                round(users * poison[group].sum()),
            )
            reports = _honest_reports(
                users - attackers, repeats, honest, self.transitions[group], rng
            )
            if attackers:
                shape = poison[group] / poison[group].sum()
                reports = reports + rng.multinomial(attackers * repeats, shape)
            counts.append(reports)
        return replace(self, counts=np.array(counts, dtype=np.float64))


def _honest_reports(
    users: float, repeats: int, honest: FloatArray, transition: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Counts by output bucket of one group of honest users."""
    reports_by_value = rng.multinomial(round(users), honest / honest.sum()) * repeats
    held = np.flatnonzero(reports_by_value)
    # Columns of M sum to 1 but for rounding, which `multinomial` does not forgive.
    probabilities = transition[:, held] / transition[:, held].sum(axis=0)
    counts_by_value = rng.multinomial(reports_by_value[held], probabilities.T)
    counts: FloatArray = counts_by_value.sum(axis=0).astype(np.float64)
    return counts


def _buckets(mechanism: Mechanism, fewest_reports: int, most_buckets: int | None) -> Buckets:
    """√N buckets of the smallest group's N, within limits; as many inputs as outputs."""
    if mechanism.categorical:
        return Buckets(mechanism, mechanism.cells, mechanism.cells)
    number = max(math.isqrt(fewest_reports), constants.FEWEST_BUCKETS)
    number = min(number, most_buckets or constants.MOST_BUCKETS, mechanism.cells)
    return Buckets(mechanism, number, number)
