"""The solver of the joint filter, against plain EM and the conditions of optimality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from unpoison import Plan, Summary, simulate
from unpoison.attacks import Attack
from unpoison.filters.joint import Fit, JointCounts, PoisonModel, fit
from unpoison.filters.joint.constants import LAST_BARRIER
from unpoison.simulation.population import Population
from unpoison.types import FloatArray

pytestmark = pytest.mark.usefixtures("no_cramer_rao")

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
NEAR = 0.05
"""In units of the log-likelihood; a tenth of what moves an answer by a standard error."""
APART, TOGETHER = 1e-9, 1e9
"""Factors for the number of users: shares of attackers free in each group, or all the same."""


def simulated_counts(
    plan: Plan = PLAN,
    attack: str | Attack = "none",
    share: float = 0.25,
    seed: int = 1,
    users: int = 4_000,
) -> JointCounts:
    values = np.random.default_rng(1).beta(2, 5, users)
    run = simulate(plan, Population.of(values), attack, share, np.random.default_rng(seed))
    return JointCounts.of(run.summary, range(len(plan.groups)))


def of_categories(number: int, users: int, epsilon: float = 1.0) -> JointCounts:
    names = [f"c{place}" for place in range(number)]
    shares = 1 / np.arange(1, number + 1)
    held = np.random.default_rng(1).multinomial(users, shares / shares.sum())
    plan = Plan.new("k-rr", epsilon, min_epsilon=epsilon / 2, categories=names)
    population = Population(np.array(names), held)
    run = simulate(plan, population, "maximal-gain:1", 0.2, np.random.default_rng(1))
    return JointCounts.of(run.summary, range(len(plan.groups)))


def models(counts: JointCounts) -> dict[str, PoisonModel]:
    """One of each kind; poison in the upper eighth."""
    groups, outputs = counts.counts.shape
    upper = np.arange(outputs) >= outputs - max(outputs // 8, 1)
    return {
        "nobody": PoisonModel.nobody(groups, outputs),
        "even": PoisonModel.even(groups, outputs),
        "alike": PoisonModel.alike(upper, groups),
        "own": PoisonModel.own(np.broadcast_to(upper, (groups, outputs)).copy()),
    }


def likelihood(counts: JointCounts, expected: FloatArray) -> float:
    return float((counts.counts * np.log(expected)).sum())


def plain_em(
    counts: JointCounts, model: PoisonModel, rounds: int, *, together: bool
) -> tuple[float, FloatArray, FloatArray]:
    """Likelihood, honest histogram and shares after so many rounds, with nothing clever."""
    groups, outputs = counts.counts.shape
    honest = np.full(counts.inputs, 1 / counts.inputs)
    kept = np.where(model.support.any(axis=1), 0.8, 1.0)
    shape = model.support / np.maximum(model.support.sum(axis=1, keepdims=True), 1)
    expected = np.empty((groups, outputs))
    for _ in range(rounds):
        looks = counts.transitions @ honest
        poison = (1 - kept)[:, None] * shape
        expected = kept[:, None] * looks + poison
        ratio = counts.counts / expected
        pulled = np.einsum("ti,tij,t->j", ratio, counts.transitions, kept)
        blamed = ratio * poison
        honest = honest * pulled / (honest @ pulled)
        kept = 1 - blamed.sum(axis=1) / counts.reports
        if together:
            kept = np.full(groups, 1 - blamed.sum() / counts.reports.sum())
        if model.kind == "alike":
            total = max(blamed.sum(), 1e-12)
            shape = np.broadcast_to(blamed.sum(axis=0) / total, shape.shape)
        if model.kind == "own":
            shape = blamed / np.maximum(blamed.sum(axis=1, keepdims=True), 1e-12)
    return likelihood(counts, expected), honest, 1 - kept


def check_sums(counts: JointCounts, fitted: Fit) -> None:
    assert fitted.honest.sum() == pytest.approx(1, abs=1e-7)
    assert fitted.honest.min() >= 0
    assert fitted.poison.min() >= 0
    assert np.allclose(fitted.poison.sum(axis=1), fitted.attacker_shares, atol=1e-7)
    assert np.allclose(fitted.expected.sum(axis=1), 1, atol=1e-7)
    looks = (1 - fitted.attacker_shares)[:, None] * (counts.transitions @ fitted.honest)
    assert np.allclose(looks + fitted.poison, fitted.expected, atol=1e-9)
    assert (fitted.poison[~fitted.model.support] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nobody", "even", "alike", "own"])
def test_plain_em_comes_no_higher_and_ends_at_the_same_answer(kind: str) -> None:
    """With so few users that the shares of groups are not tied to one another."""
    attack = "noise" if kind == "even" else "uniform:7C/8,C"
    counts = simulated_counts(attack=attack)
    counts = replace(counts, users=APART * counts.users)
    fitted = fit(counts, models(counts)[kind])
    reached, honest, shares = plain_em(counts, fitted.model, 6_000, together=False)
    height = likelihood(counts, fitted.expected)
    assert fitted.converged
    assert reached <= height + fitted.duality_gap
    assert reached > height - 0.5
    deviation = fitted.standard_error(counts.values)
    assert abs(honest @ counts.values - fitted.mean(counts.values)) < 0.25 * deviation
    if kind in ("alike", "own"):
        assert np.allclose(shares, fitted.attacker_shares, atol=0.003)


@pytest.mark.slow
def test_groups_of_very_many_users_have_one_share_of_attackers() -> None:
    counts = simulated_counts(attack="uniform:7C/8,C")
    tied = replace(counts, users=TOGETHER * counts.users)
    free = fit(replace(counts, users=APART * counts.users), models(counts)["alike"])
    tied_fit = fit(tied, models(counts)["alike"])
    assert np.ptp(tied_fit.attacker_shares) < 1e-6 < np.ptp(free.attacker_shares)
    reached, honest, shares = plain_em(counts, tied_fit.model, 6_000, together=True)
    assert abs(shares[0] - tied_fit.attacker_shares[0]) < 0.003
    assert reached <= likelihood(counts, tied_fit.expected) + tied_fit.duality_gap
    assert abs((honest - tied_fit.honest) @ counts.values) < 0.25 * tied_fit.standard_error(
        counts.values
    )


@pytest.mark.slow
def test_own_poison_of_one_group_is_a_convex_problem_that_em_confirms() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    counts = simulated_counts(plan, "uniform:7C/8,C")
    fitted = fit(counts, models(counts)["own"])
    reached, _, shares = plain_em(counts, fitted.model, 20_000, together=False)
    height = likelihood(counts, fitted.expected)
    assert height - 0.1 < reached <= height + fitted.duality_gap
    assert shares[0] == pytest.approx(fitted.attacker_shares[0], abs=0.002)


@pytest.mark.parametrize("seed", range(4))
def test_the_conditions_of_optimality_hold_without_poison(seed: int) -> None:
    counts = simulated_counts(seed=seed, users=30_000)
    fitted = fit(counts, models(counts)["nobody"])
    slope = np.einsum("ti,tij->j", counts.counts / fitted.expected, counts.transitions)
    total = counts.reports.sum()
    assert slope.max() - total < NEAR
    slack = total - slope
    assert (fitted.honest * slack).max() < 20 * LAST_BARRIER
    used = fitted.honest > 0.01
    assert np.abs(slack[used]).max() < NEAR
    assert 2 <= used.sum() < counts.inputs


def test_the_conditions_of_optimality_hold_for_the_poison_of_each_group() -> None:
    counts = simulated_counts(attack="uniform:3C/4,C", users=30_000)
    counts = replace(counts, users=APART * counts.users)
    fitted = fit(counts, models(counts)["own"])
    ratio = counts.counts / fitted.expected
    slope = np.where(fitted.model.support, ratio, -np.inf) - counts.reports[:, None]
    assert slope.max() < NEAR
    inside = fitted.poison[fitted.model.support] * np.abs(slope[fitted.model.support])
    assert inside.max() < 20 * LAST_BARRIER
    honest = np.einsum("t,ti,tij->j", 1 - fitted.attacker_shares, ratio, counts.transitions)
    multiplier = ((1 - fitted.attacker_shares) * counts.reports).sum()
    assert honest.max() - multiplier < NEAR
    assert (fitted.honest * (multiplier - honest)).max() < 20 * LAST_BARRIER


def test_the_gap_bounds_what_is_missing_at_every_step() -> None:
    counts = simulated_counts(users=30_000)
    model = models(counts)["nobody"]
    best = likelihood(counts, fit(counts, model).expected)
    early = [fit(counts, model, most_steps=steps) for steps in range(12)]
    for fitted in early:
        feasible = fitted.expected / fitted.expected.sum(axis=1, keepdims=True)
        missing = best - likelihood(counts, feasible)
        assert -1e-3 <= missing <= fitted.duality_gap + 1e-3
    assert not early[0].converged
    assert early[-1].duality_gap < early[4].duality_gap < early[0].duality_gap


def with_zeros() -> JointCounts:
    counts = simulated_counts()
    few = counts.counts.copy()
    few[:, ::2] = 0
    return replace(counts, counts=few)


def uneven() -> JointCounts:
    counts = simulated_counts(users=30_000)
    factors = np.array([1.0, 0.03, 100.0])
    return replace(
        counts,
        counts=np.round(counts.counts * factors[:, None]),
        users=counts.users * factors,
    )


def in_one_bucket() -> JointCounts:
    counts = simulated_counts()
    lonely = np.zeros_like(counts.counts)
    lonely[:, 5] = 1_000
    return replace(counts, counts=lonely)


def tiny() -> JointCounts:
    rng = np.random.default_rng(1)
    cells = np.stack([rng.multinomial(16, np.full(PLAN.cells, 1 / PLAN.cells)) for _ in range(3)])
    return JointCounts.of(Summary(PLAN, cells, (0, 0, 0)), range(3))


AWKWARD: dict[str, Callable[[], JointCounts]] = {
    "zeros": with_zeros,
    "uneven": uneven,
    "one bucket": in_one_bucket,
    "tiny": tiny,
    "one group": lambda: simulated_counts(
        Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1), "point:C"
    ),
    "two categories": lambda: of_categories(2, 10_000),
    "many categories": lambda: of_categories(150, 100_000),
    "large budget": lambda: simulated_counts(
        Plan.new(epsilon=8.0, min_epsilon=1.0, low=0, high=1), "noise"
    ),
    "small budget": lambda: simulated_counts(
        Plan.new(epsilon=0.02, min_epsilon=0.01, low=0, high=1)
    ),
    "square wave": lambda: simulated_counts(
        Plan.new("square-wave", 2.0, min_epsilon=0.5, low=0, high=1), "point:1+b"
    ),
    "integers": lambda: simulated_counts(
        Plan.new("piecewise-integer", 1.0, min_epsilon=0.25, low=0, high=1), "point:C"
    ),
    "square integers": lambda: simulated_counts(
        Plan.new("square-wave-integer", 1.0, min_epsilon=0.25, low=0, high=1), "point:-b"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("kind", ["nobody", "even", "alike", "own"])
def test_awkward_counts_are_fitted(name: str, kind: str) -> None:
    counts = AWKWARD[name]()
    fitted = fit(counts, models(counts)[kind])
    assert fitted.converged
    bounds = counts.inputs + fitted.model.weight_count + len(counts.reports)
    assert 0 <= fitted.duality_gap <= 2 * LAST_BARRIER * bounds
    check_sums(counts, fitted)
    assert np.isfinite(fitted.deviance)
    assert fitted.deviance >= 0
    assert 0 <= fitted.p_value <= 1
    other = plain_em(counts, fitted.model, 50, together=True)[0]
    # With noise the problem is not convex: where it fits badly, another peak may be higher.
    room = 1e-3 if kind == "even" else 1e-6
    assert other <= likelihood(counts, fitted.expected) + fitted.duality_gap + room * abs(other)


@pytest.mark.parametrize("kind", ["nobody", "even", "alike", "own"])
def test_covariances_are_positive_and_keep_the_sum(kind: str) -> None:
    counts = simulated_counts(attack="uniform:7C/8,C", users=20_000)
    fitted = fit(counts, models(counts)[kind])
    spread = np.linalg.eigvalsh((fitted.honest_covariance + fitted.honest_covariance.T) / 2)
    assert spread.min() > -1e-9
    ones = np.ones(counts.inputs)
    assert abs(ones @ fitted.honest_covariance @ ones) < 1e-8
    assert fitted.standard_error(counts.values) > 0
    shares = np.linalg.eigvalsh(fitted.share_covariance)
    assert shares.min() > -1e-12
    assert (np.diag(fitted.share_covariance) > 0).all() == (kind in ("alike", "own"))


def test_a_likelihood_rises_with_every_model_that_has_more_room() -> None:
    counts = simulated_counts(attack="uniform:7C/8,C")
    loose = replace(counts, users=APART * counts.users)
    fits = {kind: fit(loose, model) for kind, model in models(loose).items()}
    assert fits["own"].deviance < fits["alike"].deviance + 0.1
    assert fits["alike"].deviance < fits["nobody"].deviance
    assert (
        fits["own"].degrees_of_freedom
        < fits["alike"].degrees_of_freedom
        < fits["nobody"].degrees_of_freedom
    )


def test_noise_over_the_whole_domain_explains_no_less_than_nobody() -> None:
    counts = simulated_counts(attack="uniform:7C/8,C")
    loose = replace(counts, users=APART * counts.users)
    fits = {kind: fit(loose, model) for kind, model in models(loose).items()}
    assert fits["even"].deviance < fits["nobody"].deviance + 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "attack", "kind"),
    [
        ("piecewise", "none", "nobody"),
        ("piecewise", "uniform:7C/8,C", "alike"),
        ("square-wave", "none", "nobody"),
    ],
)
def test_standard_errors_are_what_repeated_collections_show(
    mechanism: str, attack: str, kind: str
) -> None:
    plan = Plan.new(mechanism, 1.0, min_epsilon=0.5, low=0, high=1)
    means, standard_errors, shares, share_errors = [], [], [], []
    for seed in range(60):
        counts = simulated_counts(plan, attack, seed=seed)
        fitted = fit(counts, models(counts)[kind])
        means.append(fitted.mean(counts.values))
        standard_errors.append(fitted.standard_error(counts.values))
        shares.append(float(fitted.attacker_shares.mean()))
        share_errors.append(
            float(np.sqrt(fitted.share_covariance.sum()) / len(fitted.attacker_shares))
        )
    assert np.std(means) == pytest.approx(np.mean(standard_errors), rel=0.25)
    if kind != "nobody":
        # The simulated share of attackers is exact over all groups; the model has it scatter.
        assert 0.4 * np.mean(share_errors) < np.std(shares) < 1.25 * np.mean(share_errors)


@pytest.mark.slow
def test_the_deviance_of_a_true_model_has_its_degrees_of_freedom_on_average() -> None:
    fits = [
        fit(counts, models(counts)["alike"])
        for counts in (simulated_counts(attack="uniform:7C/8,C", seed=seed) for seed in range(25))
    ]
    average = np.mean([fitted.deviance for fitted in fits])
    assert average == pytest.approx(
        np.mean([fitted.degrees_of_freedom for fitted in fits]), rel=0.1
    )
