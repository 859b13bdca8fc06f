"""One contract for every registered method, the paper's, ours and the defences."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unpoison import Estimate, Plan, Simulation, estimate, simulate
from unpoison.errors import InvalidParameter
from unpoison.estimate.methods import (
    default_method,
    estimates_together,
    find_method,
    method_aliases,
    method_names,
    methods,
)
from unpoison.estimate.statistic import Statistic

PLANS = {
    "numbers": Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=10),
    "baseline": Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=10, protocol="baseline"),
    "categories": Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=["tea", "milk", "water"]),
}
FITTING = [
    (name, plan) for name in method_names() for plan in PLANS if methods[name].fits(PLANS[plan])
]
pytestmark = pytest.mark.usefixtures("few_replicates")
every_method = pytest.mark.parametrize("name", method_names())
every_fitting_plan = pytest.mark.parametrize(("name", "plan"), FITTING)


@cache
def collection(plan: str) -> Simulation:
    values = np.linspace(0, 10, 600)
    if PLANS[plan].categorical:
        return simulate(PLANS[plan], ["tea", "milk"] * 300, "none", 0, np.random.default_rng(1))
    return simulate(PLANS[plan], values, "none", 0, np.random.default_rng(1))


@cache
def answer(name: str, plan: str) -> Estimate:
    return estimate(collection(plan).summary, method=name)


@every_method
def test_a_method_is_described_and_is_what_its_name_finds(name: str) -> None:
    assert methods[name].describe()
    assert find_method(name) is methods[name]
    assert methods[name].name == name


@every_method
def test_a_method_fits_some_plan(name: str) -> None:
    assert any(fitting == name for fitting, _ in FITTING)


@pytest.mark.slow
@every_fitting_plan
def test_the_estimate_is_complete(name: str, plan: str) -> None:
    result = answer(name, plan)
    assert result.method == name
    assert result.verdict
    assert result.users == pytest.approx(600)
    assert result.reports == collection(plan).summary.reports.sum()
    assert (result.frequencies is not None) == PLANS[plan].categorical
    assert Estimate.from_json(result.to_json()).to_json() == result.to_json()
    if PLANS[plan].categorical:
        assert sum((result.frequencies or {}).values()) == pytest.approx(1.0)


@pytest.mark.slow
@every_fitting_plan
def test_a_method_says_the_same_alone_and_among_others(name: str, plan: str) -> None:
    summary, statistic = collection(plan).summary, Statistic.of(PLANS[plan])
    others = [other for other, fitting in FITTING if fitting == plan and other != name][:1]
    together = estimates_together([summary], [name, *others], None, statistic)[0]
    assert list(together) == [name, *others]
    assert together[name].to_json() == answer(name, plan).to_json()


@every_method
def test_options_that_a_method_does_not_take_are_refused(name: str) -> None:
    plan = next(plan for fitting, plan in FITTING if fitting == name)
    rule = f"options of {name} must be among|method {name} takes no options"
    with pytest.raises(InvalidParameter, match=rule):
        estimate(collection(plan).summary, method=name, colour="red")


@pytest.mark.parametrize("plan", PLANS)
def test_the_default_is_the_best_ranked_method_that_fits(plan: str) -> None:
    ranks = {name: methods[name].default_rank for name, fitting in FITTING if fitting == plan}
    default = default_method(PLANS[plan])
    assert ranks[default] == max(ranks.values()) > 0
    assert list(ranks.values()).count(ranks[default]) == 1


def test_aliases_are_no_names() -> None:
    assert not set(method_aliases()) & set(method_names())
    assert set(method_aliases().values()) <= set(method_names())
