"""Collections that are estimated together are estimated as each would be alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison import Plan, simulate
from unpoison.estimate.methods import estimates_together
from unpoison.estimate.statistic import Statistic
from unpoison.filters.em import FreePoison, Problem, Stages, maximise, run_stages
from unpoison.filters.em import stages as stages_module
from unpoison.mechanisms import DiagonalTransition
from unpoison.protocols import SCHEMES, FilterOptions, analysis_of
from unpoison.simulation import Simulation, run_trials

PLANS: dict[str, dict[str, Any]] = {
    "piecewise": {"epsilon": 1.0, "low": 0, "high": 1},
    "square-wave": {"mechanism": "square-wave", "epsilon": 0.5, "low": 0, "high": 1},
    "integer": {"mechanism": "piecewise-integer", "epsilon": 0.5, "low": 0, "high": 1},
    "k-rr": {"mechanism": "k-rr", "epsilon": 0.5, "categories": ["a", "b", "c"]},
    "tiers": {"epsilon": 1.0, "low": 0, "high": 1, "tiers": [{"epsilon": 0.25}]},
}


def collections(name: str) -> list[Simulation]:
    plan = Plan.new(**{"min_epsilon": 0.125, **PLANS[name]})
    rng = np.random.default_rng(1)
    values: Any = rng.beta(2, 5, 20_000)
    attack = "uniform:O,C" if name != "square-wave" else "uniform:1,1+b"
    if plan.categorical:
        values, attack = rng.choice(["a", "b", "c"], 20_000, p=[0.5, 0.3, 0.2]), "targets:c"
    return [
        simulate(plan, values, attack, gamma, np.random.default_rng(seed))
        for seed, gamma in enumerate((0.0, 0.1, 0.4))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_what_an_estimate_is_does_not_depend_on_its_company(name: str) -> None:
    runs = collections(name)
    together = estimates_together([run.summary for run in runs], SCHEMES)
    for run, answers in zip(runs, together, strict=True):
        alone = estimates_together([run.summary], SCHEMES)[0]
        for scheme in SCHEMES:
            assert answers[scheme].to_json() == alone[scheme].to_json()


@pytest.mark.slow
def test_distributions_are_the_same_together() -> None:
    runs = collections("square-wave")
    statistic = Statistic.of(runs[0].summary.plan, "distribution")
    together = estimates_together([run.summary for run in runs], ["emf"], None, statistic)
    alone = estimates_together([runs[-1].summary], ["emf"], None, statistic)[0]["emf"]
    assert together[-1]["emf"].to_json() == alone.to_json()


@pytest.mark.slow
def test_trials_that_share_their_work_find_what_each_finds() -> None:
    plan, values = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1), np.full(3000, 0.25)

    def estimates(shared: bool) -> list[tuple[int, str, str, float]]:
        rows, _ = run_trials(
            plan,
            values,
            "uniform:C/2,C",
            0.25,
            ["oracle", "ostrich", *SCHEMES],
            trials=12,
            rng=np.random.default_rng(3),
            shared=shared,
        )
        return [(row.trial, row.method, row.collection, row.mean) for row in rows]

    assert estimates(shared=True) == estimates(shared=False)
    assert [row[0] for row in estimates(shared=True)] == [
        trial for trial in range(12) for _ in "123456"
    ]


@pytest.mark.slow
def test_all_work_shares_one_batch_at_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(problems: list[Problem], max_iterations: int) -> Any:
        sizes.append(len(problems))
        return maximise(problems, max_iterations)

    monkeypatch.setattr(stages_module, "maximise", counted)
    runs = collections("piecewise")
    groups = len(runs[0].summary.plan.groups)
    estimates_together([run.summary for run in runs], SCHEMES)
    probing, filtering, last = 2 * len(runs), (2 * groups - 1) * len(runs), groups * len(runs)
    assert [size for size in sizes if size] == [probing, filtering, last]


def test_work_of_different_length_ends_by_itself() -> None:
    response, start = DiagonalTransition(2, kept=0.75, other=0.25), np.full(2, 0.5)
    problem = Problem(response, np.array([60.0, 40.0]), start, np.zeros(2), FreePoison(), 1e-9)

    def work(turns: int) -> Stages[int]:
        for _ in range(turns):
            (solution,) = yield [problem]
            assert solution.honest[0] == pytest.approx(0.7, abs=1e-3)
        return turns

    assert run_stages([work(2), work(0), work(3)]) == [2, 0, 3]
    assert run_stages([]) == []


def test_a_scheme_that_was_a_means_to_another_is_read_when_asked_for() -> None:
    """CEMF* needs EMF, and EMS for its own means; EMF's own EMS is run only later."""
    (run, *_) = collections("square-wave")
    first = analysis_of(run.summary, range(len(run.summary.plan.groups)), FilterOptions())
    first.solve(["cemf-star"])
    other = analysis_of(run.summary, range(len(run.summary.plan.groups)), FilterOptions())
    assert first.statistic("emf", 0) == other.statistic("emf", 0)
