"""One contract for every registered mechanism, and the paper's formulas for each of its three."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.errors import InvalidParameter
from unpoison.mechanisms import (
    IntegerRandomizedResponse,
    IntegerWindowMechanism,
    Mechanism,
    PiecewiseMechanism,
    RandomizedResponse,
    SquareWaveMechanism,
    make,
    mechanisms,
)
from unpoison.mechanisms.base import MAX_EPSILON, PERTURB_BLOCK
from unpoison.mechanisms.exact import exact
from unpoison.mechanisms.integer import IntegerWindow
from unpoison.mechanisms.randomness import SystemGenerator, Words
from unpoison.types import FloatArray, IntArray

IntegerMechanism = IntegerWindowMechanism | IntegerRandomizedResponse

EPSILONS = (0.01, 0.0625, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
CATEGORIES = 5
SAMPLES = 100_000
SIGMAS = 6.0
LARGEST_WORD = 2**64 - 1
FRACTION = 2**32

INTEGER_FAMILY = tuple(name for name in mechanisms if mechanisms[name].for_devices)
NUMERICAL = tuple(name for name in mechanisms if not mechanisms[name].categorical)
CATEGORICAL = tuple(name for name in mechanisms if mechanisms[name].categorical)

every_mechanism = pytest.mark.parametrize("name", list(mechanisms))
every_integer_mechanism = pytest.mark.parametrize("name", INTEGER_FAMILY)
many_budgets = pytest.mark.parametrize("epsilon", EPSILONS)
some_budgets = pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
budgets = st.floats(0.01, 5.0)
shares = st.floats(0.0, 1.0)


class Scripted(SystemGenerator):
    """A generator whose words are written down beforehand."""

    def __init__(self, stream: Words) -> None:
        self.stream = stream
        self.used = 0

    def words(self, size: int) -> Words:
        if self.used + size > len(self.stream):
            raise EOFError("the script is too short")
        self.used += size
        return self.stream[self.used - size : self.used]


def words_with_extremes(count: int, seed: int) -> Words:
    """Random words, every few of them all zeros or all ones."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, size=count, dtype=np.uint64)
    words[rng.random(count) < 0.2] = LARGEST_WORD
    words[rng.random(count) < 0.1] = 0
    return words


@pytest.mark.parametrize("name", NUMERICAL)
@some_budgets
def test_probabilities_are_linear_between_kinks(name: str, epsilon: float) -> None:
    mechanism = make(name, epsilon)
    edges = mechanism.grid()[:: mechanism.cells // 16]
    kinks = mechanism.kinks(edges)
    assert (kinks[0], kinks[-1]) == (mechanism.input_low, mechanism.input_high)
    assert np.all(np.diff(kinks) > 0)
    at_kinks = mechanism.cell_probabilities(kinks, edges)
    between = mechanism.cell_probabilities(kinks[:-1] + 0.3 * np.diff(kinks), edges)
    assert between == pytest.approx(0.7 * at_kinks[:-1] + 0.3 * at_kinks[1:], abs=1e-9)


@every_mechanism
def test_devices_use_it_or_its_twin(name: str) -> None:
    """A mechanism is exact enough for devices, or names one with the same inputs that is."""
    kind = mechanisms[name]
    assert kind.for_devices == (kind.device_twin is None)
    if kind.device_twin is not None:
        twin = mechanisms[kind.device_twin]
        assert twin.for_devices
        assert twin.categorical == kind.categorical


@every_integer_mechanism
def test_mechanisms_for_devices_draw_whole_numbers(name: str) -> None:
    assert hasattr(make(name, 1.0), "integer")


def build(name: str, epsilon: float, cells: int | None = None) -> Mechanism:
    return make(name, epsilon, CATEGORIES if mechanisms[name].categorical else cells)


def build_integer(name: str, epsilon: float, cells: int | None = None) -> IntegerMechanism:
    return cast(IntegerMechanism, build(name, epsilon, cells))


def inputs_of(mechanism: Mechanism, count: int = 41) -> FloatArray:
    """Every category, or both ends of the domain and many points between them."""
    if mechanism.categorical:
        return np.arange(mechanism.cells, dtype=np.float64)
    low, high = mechanism.input_low, mechanism.input_high
    between = np.random.default_rng(7).uniform(low, high, count)
    return np.concatenate([np.linspace(low, high, count), between])


def input_at(mechanism: Mechanism, share: float) -> float:
    width = mechanism.input_high - mechanism.input_low
    at = min(mechanism.input_low + share * width, mechanism.input_high)
    return float(round(at)) if mechanism.categorical else at


def few_inputs(mechanism: Mechanism) -> FloatArray:
    return np.array([input_at(mechanism, share) for share in (0.0, 0.3, 0.5, 0.77, 1.0)])


def coarse_edges(mechanism: Mechanism) -> FloatArray:
    """Sixteen buckets at most, each of whole cells."""
    return mechanism.grid()[:: max(1, mechanism.cells // 16)]


def sample(mechanism: Mechanism, value: float, seed: int, count: int = SAMPLES) -> FloatArray:
    return mechanism.perturb(np.full(count, value), np.random.default_rng(seed))


def decoded(mechanism: Mechanism, reports: FloatArray, value: float) -> FloatArray:
    """Decoded reports; of categories, decoded indicators of the value's own."""
    if mechanism.categorical:
        return mechanism.decode((reports == value).astype(np.float64))
    return mechanism.decode(reports)


def decoded_target(mechanism: Mechanism, value: float) -> float:
    return 1.0 if mechanism.categorical else value


def exact_moments(mechanism: Mechanism, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the decoded report, from the probability of every cell."""
    grid = mechanism.grid()
    chances = mechanism.cell_probabilities(values, grid)
    if mechanism.categorical:
        points = mechanism.decode(np.eye(mechanism.cells)[values.astype(np.int64)])
    else:
        points = mechanism.decode(mechanism.bucket_values(grid))[None, :]
    mean = (chances * points).sum(axis=1)
    variance = (chances * (points - mean[:, None]) ** 2).sum(axis=1)
    if not mechanism.discrete:
        cell_width = (points[0, -1] - points[0, 0]) / (mechanism.cells - 1)
        variance += cell_width**2 / 12
    return mean, variance


def exp_from_below(exponent: Fraction, terms: int = 60) -> Fraction:
    """A partial sum of the exponential series: never above e^exponent."""
    term = total = Fraction(1)
    for count in range(1, terms):
        term *= exponent / count
        total += term
    return total


def fixed_offset(mechanism: IntegerMechanism, value: float) -> int:
    if isinstance(mechanism, IntegerWindowMechanism):
        return int(mechanism.fixed_offsets(np.array([value]))[0])
    return int(value) * FRACTION


def exact_weights(integer: IntegerWindow, fixed: int) -> list[int]:
    """The whole-number weight of every cell, out of total · 2^32."""
    offset, up = divmod(fixed, FRACTION)

    def weight(cell: int, start: int) -> int:
        inside = start <= cell < start + integer.window
        return integer.inside_weight if inside else integer.outside_weight

    return [
        (FRACTION - up) * weight(cell, offset) + up * weight(cell, offset + 1)
        for cell in range(integer.cells)
    ]


# Privacy


@every_mechanism
@many_budgets
def test_no_report_is_more_than_e_to_the_epsilon_likelier_for_another_input(
    name: str, epsilon: float
) -> None:
    mechanism = build(name, epsilon)
    chances = mechanism.cell_probabilities(inputs_of(mechanism), mechanism.grid())
    assert chances.min() > 0
    assert (chances.max(axis=0) / chances.min(axis=0)).max() <= math.exp(epsilon) * (1 + 1e-9)


@every_mechanism
@settings(max_examples=40, deadline=None)
@given(epsilon=budgets, one=shares, other=shares)
def test_any_two_inputs_at_any_budget_are_hidden_in_each_other(
    name: str, epsilon: float, one: float, other: float
) -> None:
    mechanism = build(name, epsilon)
    values = np.array([input_at(mechanism, one), input_at(mechanism, other)])
    chances = mechanism.cell_probabilities(values, mechanism.grid())
    assert np.abs(np.log(chances[0] / chances[1])).max() <= epsilon * (1 + 1e-9)


@every_mechanism
@many_budgets
def test_the_budget_is_used_up(name: str, epsilon: float) -> None:
    mechanism = build(name, epsilon)
    chances = mechanism.cell_probabilities(inputs_of(mechanism), mechanism.grid())
    assert (chances.max(axis=0) / chances.min(axis=0)).max() >= math.exp(epsilon) * (1 - 1e-6)


@every_mechanism
@some_budgets
def test_samples_of_any_two_inputs_differ_by_no_more_than_e_to_the_epsilon(
    name: str, epsilon: float
) -> None:
    mechanism = build(name, epsilon)
    edges, bound = coarse_edges(mechanism), math.exp(epsilon)
    counts = [
        np.histogram(sample(mechanism, value, seed), edges)[0]
        for seed, value in enumerate(few_inputs(mechanism))
    ]
    for one in counts:
        for other in counts:
            noise = np.sqrt(one + bound**2 * other)
            assert (one - bound * other <= SIGMAS * noise).all()


@every_integer_mechanism
@settings(max_examples=40, deadline=None)
@given(epsilon=budgets)
def test_integer_weights_are_the_largest_that_keep_the_budget(name: str, epsilon: float) -> None:
    integer = build_integer(name, epsilon).integer
    exponent = exact(epsilon)
    at_most = exp_from_below(exponent)
    assert Fraction(integer.inside_weight, integer.outside_weight) <= at_most
    at_least = at_most + exponent**60 / math.factorial(60) * 2
    assert Fraction(integer.inside_weight + 1, integer.outside_weight) > at_least


@every_integer_mechanism
@many_budgets
def test_integer_cells_keep_the_budget_exactly(name: str, epsilon: float) -> None:
    mechanism = build_integer(name, epsilon, cells=24)
    rows = [
        exact_weights(mechanism.integer, fixed_offset(mechanism, value))
        for value in inputs_of(mechanism, 9).tolist()
    ]
    bound = exp_from_below(exact(epsilon))
    for column in zip(*rows, strict=True):
        assert max(column) <= bound * min(column)


@every_integer_mechanism
@many_budgets
def test_integer_cells_have_the_probabilities_that_are_stated(name: str, epsilon: float) -> None:
    mechanism = build_integer(name, epsilon, cells=24)
    values = inputs_of(mechanism, 9)
    whole = mechanism.integer.total * FRACTION
    rows = [exact_weights(mechanism.integer, fixed_offset(mechanism, v)) for v in values.tolist()]
    assert all(sum(row) == whole for row in rows)
    stated = mechanism.cell_probabilities(values, mechanism.grid())
    np.testing.assert_allclose(stated, np.array(rows, dtype=np.float64) / whole, atol=1e-9)


# Probabilities, bias and variance


@every_mechanism
@many_budgets
def test_probabilities_of_all_cells_sum_to_one(name: str, epsilon: float) -> None:
    mechanism = build(name, epsilon)
    chances = mechanism.cell_probabilities(inputs_of(mechanism), mechanism.grid())
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)


@every_mechanism
@some_budgets
def test_samples_follow_the_stated_probabilities(name: str, epsilon: float) -> None:
    mechanism = build(name, epsilon)
    edges, values = coarse_edges(mechanism), few_inputs(mechanism)
    if mechanism.categorical:
        chances = mechanism.cell_probabilities(values, mechanism.grid())
    else:
        chances = mechanism.cell_probabilities(values, edges)
    for seed, (value, chance) in enumerate(zip(values.tolist(), chances, strict=True)):
        counts, _ = np.histogram(sample(mechanism, value, 100 + seed), edges)
        noise = np.sqrt(SAMPLES * chance * (1 - chance))
        assert (np.abs(counts - SAMPLES * chance) <= SIGMAS * noise).all()


@every_mechanism
@many_budgets
def test_decoding_is_right_on_average(name: str, epsilon: float) -> None:
    mechanism = build(name, epsilon)
    values = inputs_of(mechanism)
    targets = [decoded_target(mechanism, value) for value in values.tolist()]
    mean, _ = exact_moments(mechanism, values)
    np.testing.assert_allclose(mean, targets, atol=1e-6)


@every_mechanism
@many_budgets
def test_variance_follows_from_the_probabilities(name: str, epsilon: float) -> None:
    mechanism = build(name, epsilon)
    values = inputs_of(mechanism)
    _, variance = exact_moments(mechanism, values)
    np.testing.assert_allclose(mechanism.variance(values), variance, rtol=1e-6)


@every_mechanism
@some_budgets
def test_decoded_samples_have_the_mean_and_variance_of_the_formula(
    name: str, epsilon: float
) -> None:
    mechanism = build(name, epsilon)
    for seed, value in enumerate(few_inputs(mechanism).tolist()):
        numbers = decoded(mechanism, sample(mechanism, value, 200 + seed), value)
        variance = float(mechanism.variance(np.array([value]))[0])
        bias = numbers.mean() - decoded_target(mechanism, value)
        assert abs(bias) <= SIGMAS * math.sqrt(variance / SAMPLES)
        squares = (numbers - decoded_target(mechanism, value)) ** 2
        assert abs(squares.mean() - variance) <= SIGMAS * squares.std() / math.sqrt(SAMPLES)


@every_mechanism
@settings(max_examples=40, deadline=None)
@given(epsilon=budgets, share=shares)
def test_no_input_has_more_than_the_worst_variance(name: str, epsilon: float, share: float) -> None:
    mechanism = build(name, epsilon)
    variance = mechanism.variance(np.array([input_at(mechanism, share)]))[0]
    assert variance <= mechanism.worst_variance * (1 + 1e-12)


@every_mechanism
@many_budgets
def test_the_worst_variance_is_met_by_some_input(name: str, epsilon: float) -> None:
    mechanism = build(name, epsilon)
    met = float(mechanism.variance(inputs_of(mechanism)).max())
    if mechanism.categorical:
        chances = mechanism.cell_probabilities(inputs_of(mechanism), mechanism.grid())
        step = float(mechanism.decode(np.ones(1))[0] - mechanism.decode(np.zeros(1))[0])
        met = float((chances * (1 - chances)).max()) * step**2
    assert met >= mechanism.worst_variance * (1 - 1e-6)


@pytest.mark.parametrize("name", [name for name in INTEGER_FAMILY if name in NUMERICAL])
@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(0.01, 10.0), cells=st.integers(2, 40))
def test_the_worst_variance_covers_inputs_between_the_offsets_of_few_cells(
    name: str, epsilon: float, cells: int
) -> None:
    mechanism = make(name, epsilon, cells)
    values = np.linspace(mechanism.input_low, mechanism.input_high, 2001)
    assert mechanism.variance(values).max() <= mechanism.worst_variance * (1 + 1e-9)


@pytest.mark.parametrize("name", CATEGORICAL)
@pytest.mark.parametrize("cells", [2, 3, 40])
def test_decoding_estimates_the_frequency_of_every_category(name: str, cells: int) -> None:
    mechanism = make(name, 1.0, cells)
    values = np.arange(cells, dtype=np.float64)
    chances = mechanism.cell_probabilities(values, mechanism.grid())
    decoded_mean = mechanism.decode(np.ones(cells)) * chances
    decoded_mean += mechanism.decode(np.zeros(cells)) * (1 - chances)
    np.testing.assert_allclose(decoded_mean, np.eye(cells), atol=1e-12)


# Reports


@every_mechanism
@many_budgets
def test_reports_stay_in_the_output_domain_even_on_extreme_random_words(
    name: str, epsilon: float
) -> None:
    mechanism = build(name, epsilon)
    values = np.repeat(few_inputs(mechanism), 400)
    script = Scripted(words_with_extremes(4 * len(values), seed=1))
    reports = mechanism.perturb(values, script)
    assert reports.shape == values.shape
    assert (reports >= mechanism.output_low).all()
    assert (reports <= mechanism.output_high).all()
    if mechanism.discrete:
        assert (reports == np.floor(reports)).all()
        assert (reports < mechanism.cells).all()


def assert_split_changes_nothing(name: str, size: int, cuts: list[int], seed: int) -> None:
    """Values that are perturbed in parts give the reports of all at once."""
    mechanism = build(name, 1.0)
    values = np.resize(inputs_of(mechanism), size)
    whole = mechanism.perturb(values, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    parts = [mechanism.perturb(part, rng) for part in np.split(values, cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@every_mechanism
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 200), max_size=6))
def test_any_split_of_the_values_gives_the_same_reports(
    name: str, seed: int, cuts: list[int]
) -> None:
    assert_split_changes_nothing(name, 200, sorted(cuts), seed)


@every_mechanism
def test_splits_across_the_blocks_inside_give_the_same_reports(name: str) -> None:
    cuts = [1, PERTURB_BLOCK - 1, PERTURB_BLOCK + 2, 2 * PERTURB_BLOCK + 1]
    assert_split_changes_nothing(name, 2 * PERTURB_BLOCK + 5, cuts, seed=3)


@every_integer_mechanism
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_any_split_gives_the_same_reports_when_words_are_refused(
    name: str, seed: int, cuts: list[int]
) -> None:
    mechanism = build(name, 1.0)
    values = np.resize(inputs_of(mechanism), 60)
    stream = words_with_extremes(600, seed)
    script, split_script = Scripted(stream), Scripted(stream)
    whole = mechanism.perturb(values, script)
    assert script.used > 2 * len(values)
    parts = [mechanism.perturb(part, split_script) for part in np.split(values, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert split_script.used == script.used


@every_mechanism
def test_values_are_left_alone_and_may_be_a_view(name: str) -> None:
    mechanism = build(name, 1.0)
    values = np.resize(inputs_of(mechanism), 400)
    before = values.copy()
    of_view = mechanism.perturb(values[::3], np.random.default_rng(5))
    of_copy = mechanism.perturb(values[::3].copy(), np.random.default_rng(5))
    np.testing.assert_array_equal(of_view, of_copy)
    np.testing.assert_array_equal(values, before)


@every_mechanism
def test_no_values_give_no_reports(name: str) -> None:
    assert len(build(name, 1.0).perturb(np.empty(0), SystemGenerator())) == 0


# Refusals


@every_mechanism
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 98765.4321, -98765.4321])
def test_values_outside_the_domain_are_refused_and_never_repeated(name: str, bad: float) -> None:
    mechanism = build(name, 1.0)
    rng = np.random.default_rng(1)
    state = rng.bit_generator.state
    values = np.array([mechanism.input_low, mechanism.input_high, bad, mechanism.input_low])
    with pytest.raises(InvalidParameter, match=r"^values must be in .* index 2\)$") as caught:
        mechanism.perturb(values, rng)
    assert caught.value.parameter == "values"
    assert not any(text in str(caught.value) for text in ("nan", "inf", "98765"))
    assert rng.bit_generator.state == state


@every_mechanism
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_ends_of_the_domain_are_its_last_values(name: str, side: float) -> None:
    mechanism = build(name, 1.0)
    end = mechanism.input_high if side > 0 else mechanism.input_low
    assert len(mechanism.perturb(np.array([end]), np.random.default_rng(1))) == 1
    with pytest.raises(InvalidParameter, match="values must be in"):
        mechanism.perturb(np.array([np.nextafter(end, side * 9)]), np.random.default_rng(1))


@pytest.mark.parametrize("name", CATEGORICAL)
def test_a_category_between_two_categories_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="values must be in"):
        make(name, 1.0, 4).perturb(np.array([1.0, 1.5]), np.random.default_rng(1))


@every_mechanism
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, -math.inf, MAX_EPSILON + 0.1])
def test_a_budget_that_is_not_positive_and_finite_is_refused(name: str, epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match=r"^epsilon must be in") as caught:
        build(name, epsilon)
    assert caught.value.parameter == "epsilon"


@every_integer_mechanism
def test_a_budget_too_small_for_integer_weights_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^epsilon must"):
        build(name, 1e-8)


@every_mechanism
@pytest.mark.parametrize("cells", [1, 0, -3, 10**12])
def test_a_number_of_cells_out_of_bounds_is_refused(name: str, cells: int) -> None:
    with pytest.raises(InvalidParameter, match=r"^cells must be from 2 to"):
        make(name, 1.0, cells)


def test_an_unknown_mechanism_is_refused_with_the_name_that_was_meant() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'piecewise'") as caught:
        make("peicewise", 1.0)
    assert caught.value.parameter == "mechanism"


# Names and shapes


@every_mechanism
def test_a_mechanism_knows_its_own_name(name: str) -> None:
    mechanism = build(name, 1.0)
    assert mechanism.name == name
    assert type(mechanism).__name__ in repr(mechanism)


@every_mechanism
@many_budgets
def test_the_landmarks_of_poison_stand_at_the_ends_of_the_report_domain(
    name: str, epsilon: float
) -> None:
    mechanism = build(name, epsilon)
    marks = np.array([mechanism.landmarks()[end] for end in "LR"])
    ends = [mechanism.output_low, mechanism.output_high]
    np.testing.assert_allclose(mechanism.place(marks), ends, atol=1e-9)
    np.testing.assert_allclose(mechanism.position(np.array(ends)), marks, atol=1e-9)


@every_mechanism
@many_budgets
def test_decoding_is_affine_and_rising(name: str, epsilon: float) -> None:
    mechanism = build(name, epsilon)
    steps = np.diff(mechanism.decode(np.array([0.0, 1.0, 2.0])))
    assert steps[0] > 0
    assert steps[1] == pytest.approx(steps[0])


@many_budgets
def test_piecewise_is_the_mechanism_of_the_paper(epsilon: float) -> None:
    """Alg. 1: C, the window [l(v), r(v)] and both densities."""
    pm, root = PiecewiseMechanism(epsilon), math.exp(epsilon / 2)
    assert pytest.approx((root + 1) / (root - 1)) == pm.C
    assert (pm.output_low, pm.output_high) == (-pm.C, pm.C)
    values = np.linspace(-1, 1, 21)
    expected = (pm.C + 1) / 2 * values - (pm.C - 1) / 2
    np.testing.assert_allclose(pm.window_start(values), expected, rtol=1e-12, atol=1e-12 * pm.C)
    assert pm.width == pytest.approx(pm.C - 1)
    assert pm.inside == pytest.approx((root**2 - root) / (2 * root + 2))
    assert pm.outside == pytest.approx(pm.inside / root**2)


@many_budgets
def test_piecewise_variance_is_the_closed_form_of_the_paper(epsilon: float) -> None:
    pm, root = PiecewiseMechanism(epsilon), math.exp(epsilon / 2)
    values = np.linspace(-1, 1, 21)
    expected = values**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    np.testing.assert_allclose(pm.variance(values), expected, rtol=1e-9)
    assert pm.worst_variance == pytest.approx(expected.max())


@many_budgets
def test_square_wave_is_the_mechanism_of_the_paper(epsilon: float) -> None:
    """b, both densities, and the decoding that takes the bias out."""
    sw, power = SquareWaveMechanism(epsilon), math.exp(epsilon)
    b = (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
    assert sw.b == pytest.approx(b, rel=1e-9)
    assert (sw.output_low, sw.output_high) == (-sw.b, 1 + sw.b)
    q = 1 / (2 * b * power + 1)
    p = power * q
    assert (sw.inside, sw.outside) == pytest.approx((p, q))
    reports = np.linspace(-b, 1 + b, 21)
    expected = (reports - q * (1 + 2 * b) / 2) / (2 * b * (p - q))
    np.testing.assert_allclose(sw.decode(reports), expected, rtol=1e-7, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-4, 15.9))
def test_a_smaller_budget_widens_the_square_wave(epsilon: float) -> None:
    here, there = SquareWaveMechanism(epsilon), SquareWaveMechanism(epsilon * 1.005)
    assert 0 < there.b < here.b < 0.5


@many_budgets
@pytest.mark.parametrize("cells", [2, 3, 17])
def test_randomized_response_is_the_mechanism_of_the_paper(epsilon: float, cells: int) -> None:
    rr, power = RandomizedResponse(epsilon, cells), math.exp(epsilon)
    assert rr.kept == pytest.approx(power / (power + cells - 1))
    assert rr.other == pytest.approx(1 / (power + cells - 1))


@many_budgets
@pytest.mark.parametrize("outputs", [4, 31, 400])
def test_input_buckets_are_as_many_as_the_paper_says(epsilon: float, outputs: int) -> None:
    pm, sw, root = PiecewiseMechanism(epsilon), SquareWaveMechanism(epsilon), math.exp(epsilon / 2)
    expected = max(2, math.floor(outputs * (root - 1) / (root + 1)))
    assert pm.input_bucket_count(outputs) == expected
    assert make("piecewise-integer", epsilon).input_bucket_count(outputs) == expected
    assert sw.input_bucket_count(outputs) == max(2, math.floor(outputs / (1 + 2 * sw.b)))


@pytest.mark.parametrize("name", [name for name in INTEGER_FAMILY if name in NUMERICAL])
@many_budgets
def test_the_integer_window_is_as_wide_as_its_twin_to_the_nearest_cell(
    name: str, epsilon: float
) -> None:
    mechanism = cast(IntegerWindowMechanism, make(name, epsilon))
    twin = mechanism.twin
    share = twin.width / (twin.output_high - twin.output_low)
    assert abs(mechanism.integer.window - mechanism.cells * share) <= 0.5
    values: IntArray = mechanism.fixed_offsets(np.array([twin.input_low, twin.input_high]))
    assert values.tolist() == [0, (mechanism.cells - mechanism.integer.window) * FRACTION]
