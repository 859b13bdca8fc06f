"""The integer draw: weights, rounding, refused words, certified bounds, the system's generator."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unpoison.errors import InvalidParameter
from unpoison.mechanisms import IntegerPiecewise, IntegerSquareWave, make, mechanisms
from unpoison.mechanisms.base import MAX_CELLS
from unpoison.mechanisms.exact import exact, floor_times_exp
from unpoison.mechanisms.integer import IntegerWindow
from unpoison.mechanisms.randomness import SystemGenerator, Words, word_source
from unpoison.types import IntArray

FRACTION = 2**32
WORDS = 2**64


class Tape:
    """Words in order, one after the other; counts how many were taken."""

    def __init__(self, words: list[int]) -> None:
        self.words = words
        self.taken = 0

    def __call__(self, size: int) -> Words:
        self.taken += size
        return np.array(self.words[self.taken - size : self.taken], dtype=np.uint64)


def tiny_window(cells: int, window: int, inside: int, outside: int) -> IntegerWindow:
    """A window whose total weight is small enough to walk through."""
    tiny = IntegerWindow(1.0, cells, window)
    tiny.inside_weight, tiny.outside_weight = inside, outside
    tiny.total = window * inside + (cells - window) * outside
    return tiny


def cells_of(window: IntegerWindow, fixed: list[int], words: list[int]) -> tuple[list[int], int]:
    """The cells for a tape of words, and how many words were taken."""
    tape = Tape(words)
    offsets: IntArray = np.array(fixed, dtype=np.int64)
    cells = window.cells_from_words(offsets, tape(2 * len(fixed)), tape)
    return cells.tolist(), tape.taken


def slow_cells(window: IntegerWindow, fixed: list[int], words: list[int]) -> tuple[list[int], int]:
    """One value at a time in Python integers: round, draw until accepted, walk over the weights."""
    limit = WORDS - WORDS % window.total
    taken, cells = 0, []
    for offset in fixed:
        start, fraction = divmod(offset, FRACTION)
        start += (words[taken] >> 32) < fraction
        taken += 1
        while words[taken] >= limit:
            taken += 1
        weight = words[taken] % window.total
        taken += 1
        cells.append(_walk(window, start, weight))
    return cells, taken


def _walk(window: IntegerWindow, start: int, weight: int) -> int:
    inside = list(range(start, start + window.window))
    outside = [cell for cell in range(window.cells) if cell not in inside]
    for cell in inside + outside:
        weight -= window.inside_weight if cell in inside else window.outside_weight
        if weight < 0:
            return cell
    raise ValueError("the weight is beyond the total")


@pytest.mark.parametrize("cells", [2, 3, 6])
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize(("inside", "outside"), [(5, 3), (7, 2), (1, 1)])
def test_every_cell_is_drawn_by_exactly_as_many_words_as_its_weight(
    cells: int, width: int, inside: int, outside: int
) -> None:
    window = tiny_window(cells, min(width, cells - 1), inside, outside)
    for offset in range(window.offsets):
        words = [word for weight in range(window.total) for word in (0, weight)]
        reported, _ = cells_of(window, [offset * FRACTION] * window.total, words)
        expected = {
            cell: inside if offset <= cell < offset + window.window else outside
            for cell in range(cells)
        }
        assert Counter(reported) == expected


@settings(max_examples=60, deadline=None)
@given(
    fixed=st.lists(st.integers(0, 4 * FRACTION), min_size=1, max_size=20),
    seed=st.integers(0, 2**32),
    refused=st.floats(0.0, 0.6),
)
def test_the_draw_is_the_plain_loop_over_values_also_when_words_are_refused(
    fixed: list[int], seed: int, refused: float
) -> None:
    window = IntegerWindow(1.0, 6, 2)
    rng = np.random.default_rng(seed)
    words = rng.integers(0, WORDS, size=400, dtype=np.uint64)
    words[rng.random(400) < refused] = WORDS - 1
    words[-100:] = 0
    assert cells_of(window, fixed, words.tolist()) == slow_cells(window, fixed, words.tolist())


def test_the_largest_multiple_of_the_total_is_where_words_begin_to_be_refused() -> None:
    window = IntegerWindow(1.0, 6, 2)
    limit = WORDS - WORDS % window.total
    last, first = 5, 0
    assert cells_of(window, [0], [0, limit - 1, 0]) == ([last], 2)
    assert cells_of(window, [0], [0, limit, 0]) == ([first], 3)
    assert cells_of(window, [0], [0, WORDS - 1, limit - 1]) == ([last], 3)


def test_a_total_that_divides_all_words_refuses_none() -> None:
    window = tiny_window(4, 2, inside=3, outside=1)
    assert window.total == 8
    assert cells_of(window, [0], [0, WORDS - 1]) == ([3], 2)


@settings(max_examples=60, deadline=None)
@given(offset=st.integers(0, 3), fraction=st.integers(1, FRACTION - 1), low=st.integers(0, 2**32))
def test_rounding_goes_up_for_exactly_as_many_words_as_the_fraction(
    offset: int, fraction: int, low: int
) -> None:
    """The words that round up are those whose high half is below the fraction: unbiased."""
    window = IntegerWindow(1.0, 6, 2)
    below, at = (fraction - 1) << 32, fraction << 32
    low %= FRACTION
    words = [below | low, 0, at | low, 0]
    cells, _ = cells_of(window, [offset * FRACTION + fraction] * 2, words)
    assert cells == [offset + 1, offset]


def test_whole_offsets_are_never_rounded() -> None:
    window = IntegerWindow(1.0, 6, 2)
    words = [0, 0, WORDS - 1, 0]
    assert cells_of(window, [4 * FRACTION] * 2, words)[0] == [4, 4]


@pytest.mark.parametrize("kind", [IntegerPiecewise, IntegerSquareWave])
@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.0, 1.0), epsilon=st.floats(0.01, 8.0), cells=st.integers(2, 5000))
def test_offsets_in_fixed_point_are_the_nearest_to_the_value(
    kind: type[IntegerPiecewise | IntegerSquareWave], share: float, epsilon: float, cells: int
) -> None:
    mechanism = kind(epsilon, cells)
    width = mechanism.input_high - mechanism.input_low
    value = min(mechanism.input_low + share * width, mechanism.input_high)
    fixed = int(mechanism.fixed_offsets(np.array([value]))[0])
    position = (Fraction(value) - Fraction(mechanism.input_low)) / Fraction(width)
    wanted = position * (mechanism.integer.offsets - 1)
    assert abs(Fraction(fixed, FRACTION) - wanted) <= Fraction(2, FRACTION)
    assert 0 <= fixed <= (mechanism.integer.offsets - 1) * FRACTION


def test_rounding_is_unbiased_on_samples() -> None:
    device = IntegerPiecewise(1.0, cells=4)
    value, count = 0.37, 400_000
    reports = device.perturb(np.full(count, value), np.random.default_rng(1))
    noise = math.sqrt(float(device.variance(np.array([value]))[0]) / count)
    assert abs(device.decode(reports).mean() - value) <= 6 * noise


@settings(max_examples=100, deadline=None)
@given(
    factor=st.integers(1, 2**40),
    exponent=st.floats(1e-9, 16.0).map(exact) | st.fractions(Fraction(1, 1000), 16),
)
@example(factor=2**24, exponent=Fraction(16))
@example(factor=1, exponent=Fraction(1, 10**12))
def test_the_certified_floor_is_that_of_eighty_digits(factor: int, exponent: Fraction) -> None:
    with localcontext() as context:
        context.prec = 80
        power = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        expected = math.floor(factor * power)
    assert floor_times_exp(factor, exponent) == expected


def test_weights_that_float_arithmetic_could_not_hold_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="under 2\\^53") as caught:
        IntegerPiecewise(16.0, MAX_CELLS)
    assert caught.value.parameter == "epsilon"


def test_more_cells_than_rounding_can_address_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="cells must be from 2 to"):
        IntegerPiecewise(1.0, MAX_CELLS + 1)


@pytest.mark.parametrize("name", list(mechanisms))
def test_the_system_generator_serves_every_mechanism(name: str) -> None:
    mechanism = make(name, 1.0)
    values = np.full(20_000, mechanism.input_high)
    reports = mechanism.perturb(values, SystemGenerator())
    edges = mechanism.grid()[:: max(1, mechanism.cells // 8)]
    counts, _ = np.histogram(reports, edges)
    chances = mechanism.cell_probabilities(values[:1], edges)[0]
    noise = np.sqrt(len(values) * chances * (1 - chances))
    assert (np.abs(counts - len(values) * chances) <= 7 * noise).all()


def test_the_system_generator_gives_fresh_words_and_uniform_numbers() -> None:
    rng = SystemGenerator()
    assert len(np.unique(rng.words(1000))) == 1000
    assert not np.array_equal(rng.words(10), rng.words(10))
    numbers = np.concatenate([one.random(50_000) for one in rng.spawn(2)])
    assert 0 <= numbers.min() <= numbers.max() < 1
    assert abs(numbers.mean() - 0.5) <= 7 * math.sqrt(1 / 12 / len(numbers))


@pytest.mark.parametrize("word", [0, 1, WORDS - 1])
def test_extreme_words_give_numbers_from_zero_to_below_one(
    word: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = SystemGenerator()
    monkeypatch.setattr(rng, "words", lambda size: np.full(size, word, dtype=np.uint64))
    assert rng.random(1)[0] == Fraction(word >> 11, 2**53)


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=8), seed=st.integers(0, 2**32))
def test_a_stream_of_words_does_not_depend_on_how_it_is_asked_for(
    sizes: list[int], seed: int
) -> None:
    whole = word_source(np.random.default_rng(seed))(sum(sizes))
    draw = word_source(np.random.default_rng(seed))
    parts = [draw(size) for size in sizes]
    assert [word for part in parts for word in part.tolist()] == whole.tolist()
