"""Collections in which all reports are equal: nobody's honest noise, but anybody can send them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from unpoison import Plan, estimate, summarise

pytestmark = pytest.mark.slow

PLANS: dict[str, dict[str, Any]] = {
    "piecewise-integer": {"low": 0, "high": 100},
    "square-wave-integer": {"low": 0, "high": 100},
    "piecewise": {"low": 0, "high": 100},
    "k-rr": {"categories": ["a", "b", "c"]},
}


@pytest.mark.parametrize("mechanism", PLANS)
@pytest.mark.parametrize("users", [20, 60, 5000])
@pytest.mark.parametrize("place", [0.0, 0.002, 0.5, 1.0])
def test_equal_reports_are_estimated_with_doubt(mechanism: str, users: int, place: float) -> None:
    plan = Plan.new(mechanism, 1.0, 0.25, **PLANS[mechanism])
    cell = round(place * (plan.cells - 1))
    groups = np.repeat(range(len(plan.groups)), [users * group.reports for group in plan.groups])
    values = [_report(plan, group, cell) for group in range(len(plan.groups))]
    answer = estimate(summarise({"group": groups, "value": np.array(values)[groups]}, plan))
    nothing_known = answer.interval is not None and answer.interval == pytest.approx(plan.bounds)
    assert answer.fit["doubt"] or nothing_known or "do not use" in answer.verdict
    assert json.loads(answer.to_json())["verdict"]


def _report(plan: Plan, group: int, cell: int) -> float:
    """A report in a cell: its number, or its middle."""
    mechanism = plan.group_mechanisms[group]
    return float(cell if mechanism.discrete else mechanism.grid()[cell : cell + 2].mean())
