"""The experiment about the planner: requests that can be, rows, and claims that can fail."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from unpoison.experiments.planner import CLOSE, SECONDS, PlannerFigure
from unpoison.experiments.planner_requests import BUDGETS, SHARES, USERS, drawn_requests
from unpoison.planner import Candidate, Setting, candidates


def rows(**changed: Any) -> pa.Table:
    columns: dict[str, Any] = {
        "prediction_ratio": [1.0] * 10,
        "seconds": [10.0] * 10,
        "asked_again": [True] * 5 + [False] * 5,
        "other_plan": [0.0] * 10,
    }
    return pa.table({**columns, **changed})


def confirmed(**changed: Any) -> list[bool]:
    return [claim.confirmed for claim in PlannerFigure().claims(rows(**changed), quick=False)]


def test_requests_are_ones_that_can_be_made() -> None:
    for request in drawn_requests(30, quick=False):
        assert BUDGETS[0] <= request.epsilon <= BUDGETS[1]
        assert USERS[0] <= request.users <= USERS[1]
        assert SHARES[0] <= request.gamma <= SHARES[1]
        Setting(request.users, request.gamma)
        assert candidates(request.epsilon, low=-1, high=1)


def test_the_aims_are_reached_if_predictions_are_true() -> None:
    assert confirmed() == [True, True, True]


@pytest.mark.parametrize("ratio", [CLOSE[0] - 0.01, CLOSE[1] + 0.01])
def test_one_in_ten_predictions_may_be_off_but_not_two(ratio: float) -> None:
    assert confirmed(prediction_ratio=[1.0] * 9 + [ratio])[0]
    assert not confirmed(prediction_ratio=[1.0] * 8 + [ratio] * 2)[0]


def test_one_request_that_takes_long_is_enough() -> None:
    assert confirmed(seconds=[10.0] * 9 + [SECONDS])[1] is False


def test_only_requests_that_were_asked_again_can_have_changed() -> None:
    assert confirmed(other_plan=[1.0] + [0.0] * 9)[2]
    assert not confirmed(other_plan=[1.0] * 2 + [0.0] * 8)[2]
    assert not confirmed(other_plan=[1.0] * 2 + [1.0] * 8)[2]


def two_candidates(epsilon: float, **keys: Any) -> list[Candidate]:
    return candidates(epsilon, epsilon / 2, **keys)


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_a_request_is_predicted_and_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    room = "unpoison.experiments.planner_requests"
    monkeypatch.setattr(f"{room}.FIRST_LOOK", 1)
    monkeypatch.setattr(f"{room}.HARD_LOOK", 1)
    monkeypatch.setattr(f"{room}.candidates", two_candidates)
    (row,) = drawn_requests(1, quick=True)[0].run()
    assert row["prediction_ratio"] == pytest.approx(row["predicted"] / row["measured"])
    assert 0.1 < row["prediction_ratio"] < 10
    assert row["seconds"] > 0
    table = pa.table({name: [value] for name, value in row.items()})
    figure = PlannerFigure()
    assert len(figure.tables(table, quick=True)["Predicted and measured"]) == 2
    assert len(figure.draw(table, quick=True).axes) == 3
