"""Post-processing of frequencies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from unpoison.errors import InvalidParameter
from unpoison.estimate.postprocessing import POST_PROCESSING, post_process
from unpoison.types import FloatArray

numbers = st.floats(-3, 3, allow_subnormal=False)
vectors = st.lists(numbers, min_size=1, max_size=12).map(np.array)
summing_to_one = st.lists(numbers, max_size=12).map(lambda rest: np.array([*rest, 1 - sum(rest)]))


def test_norm_sub_is_what_is_done_unless_something_else_is_asked() -> None:
    vector = np.array([0.9, 0.4, -0.3])
    assert post_process(vector).tolist() == post_process(vector, "norm-sub").tolist()
    assert list(POST_PROCESSING) == ["none", "clip", "norm-sub"]


@settings(deadline=None)
@given(vectors)
def test_none_changes_nothing_and_clip_only_what_is_outside(vector: FloatArray) -> None:
    assert post_process(vector, "none").tolist() == vector.tolist()
    expected = [min(max(frequency, 0.0), 1.0) for frequency in vector]
    assert post_process(vector, "clip").tolist() == expected


def check_nearest(vector: FloatArray, nearest: FloatArray) -> None:
    """The conditions of Karush, Kuhn and Tucker, which only the nearest point satisfies."""
    assert nearest.sum() == pytest.approx(1, abs=1e-12)
    assert nearest.min() >= 0
    taken = vector - nearest
    kept = nearest > 1e-12
    assert np.ptp(taken[kept]) < 1e-9
    assert (taken[~kept] <= taken[kept].min() + 1e-9).all()


@settings(deadline=None)
@given(vectors)
def test_norm_sub_is_the_nearest_point_of_the_simplex(vector: FloatArray) -> None:
    check_nearest(vector, post_process(vector, "norm-sub"))


@settings(deadline=None)
@given(summing_to_one)
def test_norm_sub_of_unbiased_frequencies_is_the_nearest_point(vector: FloatArray) -> None:
    check_nearest(vector, post_process(vector, "norm-sub"))


@pytest.mark.parametrize("seed", range(6))
def test_norm_sub_is_what_a_general_solver_finds(seed: int) -> None:
    vector = np.random.default_rng(seed).normal(0.2, 0.5, 6)
    whole = {"type": "eq", "fun": lambda z: z.sum() - 1}
    optimum = optimize.minimize(  # type: ignore[call-overload]
        lambda z: float(((z - vector) ** 2).sum()),
        np.full(6, 1 / 6),
        bounds=[(0, 1)] * 6,
        constraints=[whole],
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(post_process(vector), optimum.x, atol=1e-5)


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ([0.25, 0.75], [0.25, 0.75]),
        ([0.0, 1.0, 0.0], [0.0, 1.0, 0.0]),
        ([7.0], [1.0]),
        ([-7.0], [1.0]),
        ([0.0], [1.0]),
        ([-1.0, -2.0], [1.0, 0.0]),
        ([-5.0, -5.0], [0.5, 0.5]),
        ([0.0, 0.0, 0.0, 0.0], [0.25] * 4),
        ([100.0, -99.0], [1.0, 0.0]),
        ([1e9, -1e9, 1.0], [1.0, 0.0, 0.0]),
    ],
)
def test_norm_sub_of_special_vectors(vector: list[float], expected: list[float]) -> None:
    assert post_process(np.array(vector)).tolist() == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(vectors)
def test_norm_sub_twice_is_norm_sub_and_the_order_stays(vector: FloatArray) -> None:
    once = post_process(vector)
    np.testing.assert_allclose(post_process(once), once, atol=1e-12)
    assert (np.diff(once[np.argsort(vector)]) >= 0).all()


def test_the_frequencies_that_are_given_stay_as_they_are() -> None:
    vector = np.array([0.9, 0.4, -0.3])
    for name in POST_PROCESSING:
        post_process(vector, name)
    assert vector.tolist() == [0.9, 0.4, -0.3]


def test_an_unknown_step_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'norm-sub'"):
        post_process(np.array([1.0]), "norm-sup")
