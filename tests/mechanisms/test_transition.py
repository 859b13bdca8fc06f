"""Transitions against plain dense matrices, and the buckets that they are built on."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from itertools import pairwise
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.errors import NotEnoughData
from unpoison.filters.buckets import MIN_REPORTS, Buckets
from unpoison.mechanisms import IntegerWindowMechanism, WindowMechanism, make, mechanisms
from unpoison.types import FloatArray

NUMERICAL = tuple(name for name in mechanisms if not mechanisms[name].categorical)
CATEGORICAL = tuple(name for name in mechanisms if mechanisms[name].categorical)
INTEGER = tuple(name for name in NUMERICAL if mechanisms[name].discrete)
ENTRIES_A_BUCKET = 16
BYTES_A_BUCKET = 2000

every_numerical = pytest.mark.parametrize("name", NUMERICAL)
every_categorical = pytest.mark.parametrize("name", CATEGORICAL)
some_budgets = pytest.mark.parametrize("epsilon", [0.0625, 0.5, 2.0, 5.0])
budgets = st.floats(0.02, 6.0)
parts = st.lists(st.integers(1, 1000), min_size=1, max_size=12)


def window(name: str, epsilon: float, cells: int | None = None) -> WindowMechanism:
    return cast(WindowMechanism, make(name, epsilon, cells))


def spread(low: float, high: float, sizes: list[int]) -> FloatArray:
    """Edges from low to high with bucket widths in the given proportions."""
    ends = np.concatenate([[0], np.cumsum(sizes)]) / sum(sizes)
    edges: FloatArray = low + ends * (high - low)
    edges[-1] = high
    return edges


def input_edges(mechanism: WindowMechanism, sizes: list[int]) -> FloatArray:
    return spread(mechanism.input_low, mechanism.input_high, sizes)


def output_edges(mechanism: WindowMechanism, sizes: list[int]) -> FloatArray:
    return spread(mechanism.output_low, mechanism.output_high, sizes)


def averaged(
    mechanism: WindowMechanism, inputs: FloatArray, outputs: FloatArray, steps: int
) -> FloatArray:
    """The dense matrix by brute force: single-input probabilities averaged over fine steps."""
    shares = (np.arange(steps) + 0.5) / steps
    columns = [
        mechanism.cell_probabilities(low + (high - low) * shares, outputs).mean(axis=0)
        for low, high in pairwise(inputs)
    ]
    return np.stack(columns, axis=1)


def averaged_between_kinks(
    mechanism: WindowMechanism, inputs: FloatArray, outputs: FloatArray
) -> FloatArray:
    """The same without error: probabilities are straight lines between the kinks in the input."""
    low, high = mechanism.input_low, mechanism.input_high
    first, last = mechanism.window_start(np.array([low, high]))
    starts = np.concatenate([outputs, outputs - mechanism.width])
    kinks = low + (starts - first) / (last - first) * (high - low)
    columns = []
    for left, right in pairwise(inputs):
        points = np.unique(np.concatenate([[left, right], np.clip(kinks, left, right)]))
        chances = mechanism.cell_probabilities(points, outputs)
        middles = (chances[1:] + chances[:-1]) / 2
        columns.append(np.diff(points) @ middles / (right - left))
    return np.stack(columns, axis=1)


@every_numerical
@some_budgets
def test_the_matrix_is_the_average_over_each_input_bucket(name: str, epsilon: float) -> None:
    mechanism = window(name, epsilon)
    inputs, outputs = input_edges(mechanism, [1] * 7), output_edges(mechanism, [1] * 15)
    dense = mechanism.transition(inputs, outputs).dense()
    np.testing.assert_allclose(dense, averaged(mechanism, inputs, outputs, 2000), atol=2e-6)


@every_numerical
@settings(max_examples=60, deadline=None)
@given(epsilon=budgets, inputs=parts, outputs=parts)
def test_the_matrix_is_exact_on_any_edges(
    name: str, epsilon: float, inputs: list[int], outputs: list[int]
) -> None:
    mechanism = window(name, epsilon)
    into, out_of = input_edges(mechanism, inputs), output_edges(mechanism, outputs)
    dense = mechanism.transition(into, out_of).dense()
    assert dense.shape == (len(outputs), len(inputs))
    np.testing.assert_allclose(dense, averaged_between_kinks(mechanism, into, out_of), atol=1e-11)


@every_numerical
@settings(max_examples=30, deadline=None)
@given(epsilon=budgets, ends=st.tuples(st.floats(0.0, 0.45), st.floats(0.55, 1.0)), inputs=parts)
def test_the_matrix_is_exact_on_a_part_of_the_input_domain(
    name: str, epsilon: float, ends: tuple[float, float], inputs: list[int]
) -> None:
    mechanism = window(name, epsilon)
    width = mechanism.input_high - mechanism.input_low
    low, high = (mechanism.input_low + end * width for end in ends)
    into, out_of = spread(low, high, inputs), output_edges(mechanism, [1] * 10)
    dense = mechanism.transition(into, out_of).dense()
    np.testing.assert_allclose(dense, averaged_between_kinks(mechanism, into, out_of), atol=1e-11)


@pytest.mark.slow
@every_numerical
@settings(max_examples=60, deadline=None)
@given(epsilon=budgets, inputs=parts, outputs=parts, seed=st.integers(0, 2**32))
def test_forward_and_adjoint_are_the_matrix_and_its_transpose(
    name: str, epsilon: float, inputs: list[int], outputs: list[int], seed: int
) -> None:
    mechanism = window(name, epsilon)
    into, out_of = input_edges(mechanism, inputs), output_edges(mechanism, outputs)
    transition = mechanism.transition(into, out_of)
    dense = averaged_between_kinks(mechanism, into, out_of)
    rng = np.random.default_rng(seed)
    histogram, weights = rng.random(len(inputs)), rng.normal(size=len(outputs))
    np.testing.assert_allclose(transition.forward(histogram), dense @ histogram, atol=1e-10)
    np.testing.assert_allclose(transition.adjoint(weights), dense.T @ weights, atol=1e-10)


@every_numerical
@settings(max_examples=60, deadline=None)
@given(epsilon=budgets, inputs=parts, outputs=parts)
def test_every_column_is_a_distribution(
    name: str, epsilon: float, inputs: list[int], outputs: list[int]
) -> None:
    mechanism = window(name, epsilon)
    into, out_of = input_edges(mechanism, inputs), output_edges(mechanism, outputs)
    dense = mechanism.transition(into, out_of).dense()
    assert dense.min() > 0
    np.testing.assert_allclose(dense.sum(axis=0), 1.0, rtol=1e-12)


@every_numerical
@pytest.mark.parametrize("outputs", [1, 2, 9])
def test_one_input_bucket_is_the_average_over_all_inputs(name: str, outputs: int) -> None:
    mechanism = window(name, 1.0)
    whole = input_edges(mechanism, [1])
    out_of = output_edges(mechanism, [1] * outputs)
    one = mechanism.transition(whole, out_of)
    many = mechanism.transition(input_edges(mechanism, [1] * 8), out_of)
    assert (one.inputs, one.outputs) == (1, outputs)
    np.testing.assert_allclose(one.dense()[:, 0], many.dense().mean(axis=1), atol=1e-13)


@every_numerical
@some_budgets
def test_symmetry_of_the_mechanism_is_kept(name: str, epsilon: float) -> None:
    mechanism = window(name, epsilon)
    dense = mechanism.transition(
        input_edges(mechanism, [1] * 6), output_edges(mechanism, [1] * 11)
    ).dense()
    np.testing.assert_allclose(dense, dense[::-1, ::-1], atol=1e-12)


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("cells", [2, 3, 20])
def test_integer_transitions_on_unit_cells_mix_whole_number_weights(
    name: str, epsilon: float, cells: int
) -> None:
    """An input bucket between two neighbouring offsets takes half of the weights of each."""
    mechanism = cast(IntegerWindowMechanism, make(name, epsilon, cells))
    integer = mechanism.integer

    def weight(cell: int, start: int) -> int:
        inside = start <= cell < start + integer.window
        return integer.inside_weight if inside else integer.outside_weight

    exact = [
        [
            float(Fraction(weight(cell, start) + weight(cell, start + 1), 2 * integer.total))
            for start in range(integer.offsets - 1)
        ]
        for cell in range(cells)
    ]
    into = input_edges(mechanism, [1] * (integer.offsets - 1))
    dense = mechanism.transition(into, mechanism.grid()).dense()
    np.testing.assert_allclose(dense, exact, rtol=1e-12)


@every_categorical
@some_budgets
@pytest.mark.parametrize("cells", [2, 3, 30])
def test_the_matrix_of_categories_holds_their_probabilities(
    name: str, epsilon: float, cells: int
) -> None:
    mechanism = make(name, epsilon, cells)
    categories = np.arange(cells, dtype=np.float64)
    chances = mechanism.cell_probabilities(categories, mechanism.grid()).T
    transition = mechanism.transition(np.arange(cells + 1.0), mechanism.grid())
    weights = np.random.default_rng(1).normal(size=cells)
    np.testing.assert_allclose(transition.dense(), chances, rtol=1e-12)
    np.testing.assert_allclose(transition.forward(weights), chances @ weights, atol=1e-12)
    np.testing.assert_allclose(transition.adjoint(weights), chances.T @ weights, atol=1e-12)


@every_numerical
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 4000), (4000, 1), (300, 2000), (2000, 4000)])
@pytest.mark.parametrize("epsilon", [0.0625, 2.0])
def test_entries_grow_with_the_number_of_buckets_and_not_their_product(
    name: str, inputs: int, outputs: int, epsilon: float
) -> None:
    mechanism = window(name, epsilon)
    into, out_of = input_edges(mechanism, [1] * inputs), output_edges(mechanism, [1] * outputs)
    transition = mechanism.transition(into, out_of)
    assert transition.sparse.nnz <= ENTRIES_A_BUCKET * (inputs + outputs)
    assert transition.features <= 2 * (inputs + outputs)


@every_categorical
def test_entries_grow_with_the_number_of_categories(name: str) -> None:
    transition = make(name, 1.0, 4000).transition(np.arange(4001.0), np.arange(4001.0))
    assert transition.sparse.nnz <= 2 * 4000


@every_numerical
def test_no_step_needs_the_memory_of_a_matrix(name: str) -> None:
    mechanism = window(name, 1.0)
    inputs, outputs = 5000, 10_000
    into, out_of = input_edges(mechanism, [1] * inputs), output_edges(mechanism, [1] * outputs)
    tracemalloc.start()
    try:
        transition = mechanism.transition(into, out_of)
        transition.adjoint(transition.forward(np.full(inputs, 1 / inputs)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= BYTES_A_BUCKET * (inputs + outputs) < 8 * inputs * outputs


# Buckets


@every_numerical
@settings(max_examples=40, deadline=None)
@given(epsilon=budgets, reports=st.integers(MIN_REPORTS, 10**10))
def test_buckets_are_the_square_root_of_the_reports_and_at_most_the_cells(
    name: str, epsilon: float, reports: int
) -> None:
    mechanism = make(name, epsilon)
    buckets = Buckets.for_reports(mechanism, reports)
    assert buckets.outputs == min(math.isqrt(reports), mechanism.cells)
    assert 2 <= buckets.inputs <= buckets.outputs
    assert buckets.inputs == mechanism.input_bucket_count(buckets.outputs)


@every_numerical
@settings(max_examples=40, deadline=None)
@given(outputs=st.integers(2, 500), seed=st.integers(0, 2**32))
def test_bucket_edges_are_cell_edges_and_no_count_is_lost(
    name: str, outputs: int, seed: int
) -> None:
    mechanism = make(name, 1.0, 512)
    buckets = Buckets(mechanism, outputs, 2)
    first = buckets.cell_edges
    assert (first[0], first[-1]) == (0, 512)
    assert 0 < np.diff(first).min() <= np.diff(first).max() <= np.diff(first).min() + 1
    assert set(buckets.output_edges.tolist()) <= set(mechanism.grid().tolist())
    counts = np.random.default_rng(seed).integers(0, 100, 512)
    expected = [counts[start:end].sum() for start, end in pairwise(first)]
    assert buckets.count(counts).tolist() == expected


@every_numerical
@some_budgets
def test_decoded_buckets_average_to_the_input(name: str, epsilon: float) -> None:
    """With many buckets, the mean of ν_j under a column of M is the middle of its input bucket."""
    mechanism = make(name, epsilon)
    buckets = Buckets(mechanism, 4096, 5)
    means = buckets.transition.adjoint(buckets.decoded_values)
    np.testing.assert_allclose(means, buckets.input_values, atol=1e-5)


@every_categorical
def test_every_category_is_a_bucket(name: str) -> None:
    buckets = Buckets.for_reports(make(name, 1.0, 30), 100)
    assert (buckets.outputs, buckets.inputs) == (30, 30)
    assert buckets.count(np.arange(30)).tolist() == list(range(30))


@pytest.mark.parametrize("name", list(mechanisms))
@pytest.mark.parametrize("reports", [0, 1, MIN_REPORTS - 1])
def test_too_few_reports_are_refused(name: str, reports: int) -> None:
    with pytest.raises(NotEnoughData, match=f"at least {MIN_REPORTS} reports; received {reports}"):
        Buckets.for_reports(make(name, 1.0), reports)
