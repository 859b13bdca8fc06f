"""The onset of an attack: quiet series have none, and a step is where it was made."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison.estimate.onset import cumulative_step_up, step_up
from unpoison.types import FloatArray

SERIES = 1000
"""At a true rate of 5 % the share of false onsets has a standard error of 0.7 points."""
MOST_FALSE = 0.05 + 2 * 0.007


def independent(rng: np.random.Generator, length: int, share: FloatArray) -> tuple[FloatArray, ...]:
    """Estimates with errors between 0.01 and 0.03, and these errors."""
    errors = rng.uniform(0.01, 0.03, length)
    return share + errors * rng.normal(size=length), errors


def cumulative(rng: np.random.Generator, length: int, share: FloatArray) -> tuple[FloatArray, ...]:
    """Users, estimates and errors, where each estimate is of all users so far."""
    more = rng.integers(50, 2000, length).astype(np.float64)
    users = np.cumsum(more)
    spans = share + 0.5 / np.sqrt(more) * rng.normal(size=length)
    return users, np.cumsum(more * spans) / users, 0.5 / np.sqrt(users)


@pytest.mark.parametrize("length", [2, 5, 30, 200])
@pytest.mark.parametrize("clipped", [False, True])
def test_quiet_series_have_no_onset(length: int, clipped: bool) -> None:
    rng = np.random.default_rng(1)
    quiet = np.zeros(length)
    false = {"independent": 0, "cumulative": 0}
    for _ in range(SERIES):
        shares, errors = independent(rng, length, quiet)
        false["independent"] += (
            step_up(np.maximum(shares, 0) if clipped else shares, errors) is not None
        )
        users, shares, errors = cumulative(rng, length, quiet)
        shown = np.maximum(shares, 0) if clipped else shares
        false["cumulative"] += cumulative_step_up(users, shown, errors) is not None
    assert max(false.values()) <= MOST_FALSE * SERIES


def test_a_step_is_found_where_it_is() -> None:
    rng = np.random.default_rng(2)
    share = np.where(np.arange(40) < 25, 0.0, 0.15)
    for _ in range(50):
        shares, errors = independent(rng, 40, share)
        index = step_up(shares, errors)
        assert index is not None
        assert abs(index - 25) <= 1
        index = cumulative_step_up(*cumulative(rng, 40, share))
        assert index is not None
        assert abs(index - 25) <= 3


def test_a_step_down_is_no_onset() -> None:
    rng = np.random.default_rng(3)
    share = np.where(np.arange(40) < 25, 0.15, 0.0)
    assert step_up(*independent(rng, 40, share)) is None
    assert cumulative_step_up(*cumulative(rng, 40, share)) is None


@pytest.mark.parametrize("length", [0, 1])
def test_short_series_have_no_onset(length: int) -> None:
    assert step_up([0.1] * length, [0.1] * length) is None
    assert cumulative_step_up([10.0] * length, [0.1] * length, [0.1] * length) is None


def test_intervals_of_no_width_are_no_division_by_zero() -> None:
    assert step_up([0.0, 0.0, 0.5], [0.0, 0.0, 0.0]) is None
    assert step_up([0.0, 0.0, 0.5], [0.0, 0.0, 0.01]) == 2
