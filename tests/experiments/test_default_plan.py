"""The experiment about the default plan: designs, collections in common, and its table."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from unpoison import Plan
from unpoison.experiments.default_plan import DefaultPlanFigure, designs
from unpoison.experiments.plan_designs import SHARES, DesignCell


def quarter(shares: str) -> DesignCell:
    """A small collection with ε0 = ε/4, and nobody attacking."""
    cells = DefaultPlanFigure().cells(quick=True)
    quarters = [cell for cell in cells if isinstance(cell, DesignCell) and cell.smallest == "ε/4"]
    return replace(quarters[0], users=2000, shares=shares)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_designs_have_names_of_their_own_and_make_plans(epsilon: float) -> None:
    names = {(design["smallest"], design["shares"]) for design in designs(epsilon)}
    assert len(names) == len(designs(epsilon)) == 9
    for design in designs(epsilon):
        plan = Plan.new(epsilon=epsilon, min_epsilon=design["min_epsilon"], low=0, high=1)
        assert len(plan.groups) >= 2


@pytest.mark.parametrize(("shares", "place"), [("half first", 0), ("half last", -1)])
def test_shares_are_as_their_names_say(shares: str, place: int) -> None:
    weights = SHARES[shares](4)
    assert weights[place] == weights.sum() / 2


@pytest.mark.slow
def test_a_design_has_a_row_with_what_it_costs() -> None:
    rows = [row for shares in ("equal", "half first") for row in quarter(shares).run()]
    equal, tilted = rows
    assert equal["truth"] == tilted["truth"]
    assert equal["mean"] != tilted["mean"]
    table = pa.table({name: [row[name] for row in rows] for name in equal})
    _, first, second = DefaultPlanFigure().tables(table, quick=True)["All attacks"]
    assert [first[0], second[0]] == ["ε/4, equal", "ε/4, half first"]
    assert float(first[1]) == pytest.approx(equal["price"], rel=0.01)
