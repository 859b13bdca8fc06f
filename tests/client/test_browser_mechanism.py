"""The browser's client in a real Chromium: the same mechanism as Python's, cell for cell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from client.vectors.make import FILE, plan_of, window_of
from support.scripted_collector import ScriptedCollector, serving
from unpoison import Plan
from unpoison.mechanisms.exact import exact, floor_times_exp
from unpoison.types import FloatArray

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


VECTORS = json.loads(FILE.read_text(encoding="utf-8"))
SMALLEST_CHANCE = 1e-9
DRAWS = 100_000

RUN_VECTORS = """async (text) => {
    const { makeMechanism, fixedOffset, drawCell } = await import("/client.js");
    const run = (mechanism, { value, words }) => {
        let used = 0;
        const cell = drawCell(mechanism, value, () => BigInt("0x" + words[used++]));
        return { fixed: String(fixedOffset(mechanism, value)), used, cell };
    };
    return JSON.parse(text).map(({ plan, draws }) => {
        const mechanism = makeMechanism(plan, 0);
        const { window, insideWeight, total } = mechanism;
        const numbers = { window, inside_weight: String(insideWeight), total: String(total) };
        return { ...numbers, draws: draws.map((draw) => run(mechanism, draw)) };
    });
}"""
MAKE = """async (plan) => {
    const { makeMechanism } = await import("/client.js");
    try {
        return String(makeMechanism(plan, 0).total);
    } catch (error) {
        return error.message;
    }
}"""
WINDOWS = """async (plans) => {
    const { makeMechanism } = await import("/client.js");
    return plans.map((plan) => makeMechanism(plan, 0).window);
}"""
WEIGHTS = """async (texts) => {
    const { insideWeight } = await import("/client.js");
    return texts.map((text) => String(insideWeight(text)));
}"""
COUNT_DRAWS = """async ([plan, value, draws]) => {
    const { makeMechanism, drawCell, systemWord } = await import("/client.js");
    const mechanism = makeMechanism(plan, 0);
    const counts = new Array(mechanism.cells).fill(0);
    for (let i = 0; i < draws; i += 1) counts[drawCell(mechanism, value, systemWord)] += 1;
    return counts;
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    plan = Plan.new("piecewise-integer", 1.0, low=0, high=86400)
    with serving(ScriptedCollector(plan)) as collector:
        page = browser.new_page()
        page.goto(collector.address)
        yield page
        page.close()


def without(case: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key not in keys}


def test_the_browser_gives_every_vector(page: Page) -> None:
    cases = VECTORS["mechanisms"]
    inputs = [{"plan": plan_of(case).to_dict(), "draws": case["draws"]} for case in cases]
    outcomes = page.evaluate(RUN_VECTORS, json.dumps(inputs))
    for outcome, case in zip(outcomes, cases, strict=True):
        draws = [without(draw, "value", "words") for draw in case["draws"]]
        expected = without(case, "mechanism", "epsilon", "cells", "low", "high", "step")
        assert outcome == {**expected, "draws": draws}


@pytest.mark.parametrize("case", VECTORS["refused"])
def test_the_browser_refuses_what_the_vectors_refuse(page: Page, case: dict[str, Any]) -> None:
    plan = {**case, "groups": [{"epsilon": case["epsilon"], "reports": 1, "share": 1.0}]}
    assert page.evaluate(MAKE, plan) == "the plan's total weight must be under 2^53"


def random_budgets(count: int) -> list[float]:
    """Log-uniform over all that plans may have, and around 0.1, below which a series is used."""
    rng = np.random.default_rng(7)
    wide = np.exp(rng.uniform(np.log(1e-4), np.log(16.0), count))
    around = 0.1 + rng.normal(0, 1e-3, count // 10)
    ends: FloatArray = np.array([1e-4, 0.1, 16.0])
    return [float(budget) for budget in np.concatenate([wide, around, ends]).clip(1e-4, 16.0)]


def test_the_window_is_as_wide_as_python_s_at_any_budget(page: Page) -> None:
    plans = [
        Plan.new(name, epsilon, epsilon, low=0, high=1, cells=cells)
        for name in ("piecewise-integer", "square-wave-integer")
        for cells in (4096, 1023)
        for epsilon in random_budgets(500)
    ]
    windows = [window_of(plan).window for plan in plans]
    assert page.evaluate(WINDOWS, [plan.to_dict() for plan in plans]) == windows


def test_the_weight_is_the_certified_one_at_any_budget(page: Page) -> None:
    budgets = [*random_budgets(300), 1e-7, 2.5e-5, 6e-8]
    expected = [str(floor_times_exp(2**24, exact(budget))) for budget in budgets]
    assert page.evaluate(WEIGHTS, [repr(budget) for budget in budgets]) == expected
    assert page.evaluate(WEIGHTS, budgets) == expected


@pytest.mark.parametrize(
    ("mechanism", "value", "domain"),
    [
        ("piecewise-integer", 30_000.0, {"low": 0, "high": 86400, "cells": 64}),
        ("square-wave-integer", 7.1, {"low": -1e-3, "high": 7.5, "cells": 64}),
        ("k-rr-integer", "c3", {"categories": [f"c{i}" for i in range(16)]}),
    ],
)
def test_draws_from_the_browser_s_generator_follow_the_mechanism(
    page: Page, mechanism: str, value: float | str, domain: dict[str, Any]
) -> None:
    plan = Plan.new(mechanism, 1.0, 1.0, **domain)
    counts = np.array(page.evaluate(COUNT_DRAWS, [plan.to_dict(), value, DRAWS]))
    encoded = (plan.categories or ()).index(value) if isinstance(value, str) else value
    device = plan.group_mechanisms[0]
    chances = device.cell_probabilities(plan.normalise(np.array([encoded])), device.grid())[0]
    assert stats.chisquare(counts, chances * DRAWS).pvalue > SMALLEST_CHANCE
    elsewhere = np.roll(chances, 1)
    assert stats.chisquare(counts, elsewhere * DRAWS).pvalue < SMALLEST_CHANCE
