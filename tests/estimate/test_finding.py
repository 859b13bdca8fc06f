"""One word on attackers that agrees with the interval of their share, and with the verdict."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison import Plan, estimate, simulate
from unpoison.estimate import Estimate
from unpoison.estimate.finding import (
    ATTACKERS_FOUND,
    NOT_SOUGHT,
    RULED_OUT,
    UNCLEAR,
    find_attackers,
)

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=100)


def collected(users: int, fraction: float = 0.0) -> Estimate:
    values = 100 * np.random.default_rng(1).beta(2, 5, users)
    attack = "point:C" if fraction else "none"
    run = simulate(PLAN, values, attack, fraction, np.random.default_rng(2))
    return estimate(run.summary, method="joint")


@pytest.mark.parametrize(
    ("fraction", "interval", "doubt", "may_be_chance", "finding"),
    [
        (0.0, (0.0, 0.05), False, False, RULED_OUT),
        (0.0, (0.0, 0.051), False, False, UNCLEAR),
        (0.0, (0.0, 0.01), True, False, UNCLEAR),
        (0.0, None, False, False, UNCLEAR),
        (0.2, (0.19, 0.21), False, False, ATTACKERS_FOUND),
        (0.01, (0.0, 0.02), True, True, UNCLEAR),
    ],
)
def test_nothing_is_ruled_out_against_the_interval_or_a_doubt(
    fraction: float,
    interval: tuple[float, float] | None,
    doubt: bool,
    may_be_chance: bool,
    finding: str,
) -> None:
    assert find_attackers(fraction, interval, doubt, may_be_chance) == finding


def test_few_users_rule_nobody_out() -> None:
    answer = collected(600)
    assert answer.byzantine.fraction == 0
    assert answer.byzantine.interval is not None
    most = answer.byzantine.interval[1]
    assert most > 0.05
    assert answer.byzantine.finding == UNCLEAR
    assert "Nobody seems to attack" not in answer.verdict
    assert f"up to {100 * most:.1f} % of users may attack" in answer.verdict


def test_many_honest_users_rule_attackers_out() -> None:
    answer = collected(60_000)
    assert answer.byzantine.finding == RULED_OUT
    assert "Nobody seems to attack" in answer.verdict


def test_an_attack_is_found() -> None:
    assert collected(4000, fraction=0.2).byzantine.finding == ATTACKERS_FOUND


def test_defences_do_not_look_for_attackers() -> None:
    run = simulate(PLAN, np.full(500, 30.0), rng=np.random.default_rng(1))
    answer = estimate(run.summary, method="ostrich")
    assert answer.byzantine.finding == NOT_SOUGHT
    assert Estimate.from_json(answer.to_json()) == answer
