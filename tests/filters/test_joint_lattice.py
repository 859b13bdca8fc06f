"""Values on a lattice: with a step the histogram has exactly these, without it no false alarm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison import Plan, estimate, simulate
from unpoison.filters.joint import JointCounts, PoisonModel, fit, nobody_p_value
from unpoison.filters.joint.constants import MOST_LATTICE_VALUES, P_VALUE_REPLICATES
from unpoison.filters.joint.honest_mixture import MixtureStep, most_likely_mixture
from unpoison.filters.joint.point_values import with_point_values
from unpoison.simulation.ground_truth import Simulation
from unpoison.simulation.population import Population
from unpoison.types import FloatArray

USERS = 200_000


def collected(
    values: int, epsilon: float, seed: int, mechanism: str = "piecewise", **keys: Any
) -> Simulation:
    """A quiet collection whose users have so many evenly spaced values, in uneven numbers."""
    rng = np.random.default_rng(seed)
    plan = Plan.new(mechanism, epsilon, epsilon / 4, low=0, high=values - 1, **keys)
    numbers = rng.multinomial(USERS, rng.dirichlet(np.ones(values)))
    return simulate(plan, Population(np.arange(float(values)), numbers), rng=rng)


def counts_of(run: Simulation) -> JointCounts:
    return JointCounts.of(run.summary, range(len(run.summary.plan.groups)))


def shares_of(run: Simulation) -> FloatArray:
    """The share of honest users who have each value of the lattice."""
    assert run.honest is not None
    return np.array([share for share in run.honest.fractions if share > 0])


@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave", "square-wave-integer"])
def test_with_a_step_the_histogram_has_exactly_the_values_of_the_lattice(mechanism: str) -> None:
    run = collected(6, 4.0, 1, mechanism, step=1)
    counts, plan = counts_of(run), run.summary.plan
    assert [plan.natural(value) for value in counts.values] == pytest.approx(range(6))
    nobody = fit(counts, PoisonModel.nobody(*counts.counts.shape))
    assert nobody.honest == pytest.approx(shares_of(run), abs=0.02)
    assert nobody_p_value(counts, nobody) > 0.01


def test_a_lattice_of_many_values_has_buckets() -> None:
    fine = counts_of(collected(MOST_LATTICE_VALUES + 1, 1.0, 1, step=1))
    assert fine.bucket_inputs == 64
    assert counts_of(collected(MOST_LATTICE_VALUES, 1.0, 1, step=1)).bucket_inputs == 0


@pytest.mark.slow
def test_an_attack_is_found_on_a_lattice() -> None:
    rng = np.random.default_rng(1)
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=1, high=5, step=1)
    users = Population(np.arange(1.0, 6.0), np.full(5, 20_000))
    answer = estimate(simulate(plan, users, "uniform:3C/4,C", 0.2, rng).summary)
    assert answer.byzantine.fraction == pytest.approx(0.2, abs=0.01)
    assert answer.interval is not None
    assert answer.interval[0] < 3.0 < answer.interval[1]


@pytest.mark.parametrize("values", [3, 11, 26])
def test_buckets_that_cannot_express_a_lattice_get_its_values(values: int) -> None:
    counts = counts_of(collected(values, 8.0, values))
    nobody = PoisonModel.nobody(*counts.counts.shape)
    finer = with_point_values(counts, [nobody])
    assert fit(counts, nobody).p_value < 1e-6
    assert fit(finer, nobody).p_value > 1e-3
    assert finer.has_point_values
    assert not counts.has_point_values


def test_the_best_mixture_is_no_worse_than_the_truth() -> None:
    """The extreme values express any honest users, so those of the lattice as well."""
    run = collected(7, 6.0, 3)
    counts = counts_of(run)
    truth = counts.transitions_from(np.linspace(-1, 1, 7)) @ shares_of(run)
    nobody = fit(counts, PoisonModel.nobody(*counts.counts.shape))
    transitions = counts.transitions_from(counts.extreme_values())
    mixture = most_likely_mixture(counts, nobody, transitions)
    assert mixture is not None
    assert mixture.deviance < counts.deviance(truth)
    step = MixtureStep(counts, nobody, mixture.expected, transitions)
    thinned = step.thinned(counts, mixture)
    assert np.count_nonzero(thinned.honest) < np.count_nonzero(mixture.honest)
    assert thinned.deviance < mixture.deviance + 50


# The degrees of freedom are known well enough from 20 replicates, where lattices are easy to tell.
@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "replicates"), [(3.0, 20), (8.0, P_VALUE_REPLICATES)])
def test_p_values_of_a_lattice_without_a_step_are_spread_evenly(
    epsilon: float, replicates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unpoison.filters.joint.constants.P_VALUE_REPLICATES", replicates)
    p_values = []
    for seed in range(40):
        counts = counts_of(collected(5 + seed, epsilon, 100 + seed))
        nobody = PoisonModel.nobody(*counts.counts.shape)
        finer = with_point_values(counts, [nobody])
        p_values.append(nobody_p_value(finer, fit(finer, nobody)))
    assert np.mean(np.array(p_values) < 0.05) <= 0.15
    assert 0.25 < np.mean(np.array(p_values) < 0.5) < 0.75
