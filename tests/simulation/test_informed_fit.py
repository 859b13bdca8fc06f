"""The estimate of someone who knows what attackers send, but not how many they are."""

import numpy as np
import pytest

from unpoison import Plan, simulate
from unpoison.simulation import Population
from unpoison.simulation.informed_fit import informed_mean

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
POPULATION = Population(np.array([0.1, 0.4, 0.7]), np.array([60_000, 90_000, 50_000]))


@pytest.mark.parametrize(
    "attack",
    [
        "uniform:C/2,C",
        "opposite:C/2,C",
        "adaptive:1,C/2,C",
        "some-groups:1;uniform:O,C",
        "fishing:0;point:C",
    ],
)
def test_the_error_is_near_the_floor_whatever_attackers_send(attack: str) -> None:
    run = simulate(PLAN, POPULATION, attack, 0.2, np.random.default_rng(3))
    error = informed_mean(run, POPULATION, attack) - run.truth
    assert error**2 / run.floor < 20


def test_what_is_known_is_the_attack_that_is_named() -> None:
    run = simulate(PLAN, POPULATION, "uniform:C/2,C", 0.2, np.random.default_rng(3))
    errors = [
        abs(informed_mean(run, POPULATION, attack) - run.truth)
        for attack in ("uniform:C/2,C", "uniform:-C,-C/2")
    ]
    assert errors[1] > 10 * errors[0]
