from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Plan
from unpoison.attacks import (
    Attack,
    Evasion,
    NoAttack,
    Point,
    Target,
    Uniform,
    attacks,
    evaluate,
    parse_attack,
)
from unpoison.binning import Binner
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import make, mechanisms
from unpoison.types import FloatArray

NUMERICAL = [name for name in mechanisms if not mechanisms[name].categorical]
BUDGETS = (0.0625, 0.5, 2.0)
COUNT = 1000
IN_ENDS: Mapping[str, Mapping[str, str]] = {
    "uniform": {"low": "(L+7R)/8", "high": "R"},
    "point": {"at": "R"},
    "evasion": {"at": "L/2", "low": "R/2", "high": "R"},
}
"""Parameters in terms of the ends of the domain, for attacks whose defaults name C."""


def instance(name: str) -> Attack:
    return attacks[name](**IN_ENDS.get(name, {}))


def target(mechanism: str, epsilon: float) -> Target:
    part = make(mechanism, epsilon)
    return Target(part, honest_mean=part.input_low + 0.3 * (part.input_high - part.input_low))


def poison(name: str, mechanism: str, epsilon: float, seed: int, count: int = COUNT) -> FloatArray:
    rng = np.random.default_rng(seed)
    return instance(name).poison(target(mechanism, epsilon), count, rng)


every_attack = pytest.mark.parametrize("name", list(attacks))
every_mechanism = pytest.mark.parametrize("mechanism", NUMERICAL)
every_budget = pytest.mark.parametrize("epsilon", BUDGETS)


# The contract of every attack


@every_attack
@every_mechanism
@every_budget
def test_the_collector_accepts_all_poison(name: str, mechanism: str, epsilon: float) -> None:
    part = make(mechanism, epsilon)
    reports = poison(name, mechanism, epsilon, seed=1)
    top = part.output_high - (1 if part.discrete else 0)
    assert ((reports >= part.output_low) & (reports <= top)).all()
    if part.discrete:
        assert (reports == np.floor(reports)).all()
    plan = Plan.new(mechanism=mechanism, epsilon=epsilon, min_epsilon=epsilon, low=0, high=1)
    binner = Binner(plan)
    binner.add_group(0, reports)
    assert binner.summary().reports.sum() == len(reports)


@every_attack
@every_mechanism
@pytest.mark.parametrize("count", [0, 1, 7, COUNT])
def test_an_attack_sends_as_many_reports_as_asked(name: str, mechanism: str, count: int) -> None:
    expected = count if instance(name).active else 0
    assert poison(name, mechanism, 0.5, 1, count).shape == (expected,)


@every_attack
@every_mechanism
def test_the_same_seed_gives_the_same_poison(name: str, mechanism: str) -> None:
    one, other = (poison(name, mechanism, 0.5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@every_attack
def test_an_attack_is_a_frozen_value_that_its_name_finds(name: str) -> None:
    attack = instance(name)
    assert parse_attack(name) == attacks[name]()
    assert parse_attack(attack) is attack
    assert hash(attack) == hash(instance(name))


@every_attack
def test_an_attack_is_documented_with_an_example(name: str) -> None:
    assert ">>>" in (attacks[name].__doc__ or "")


# Where poison lies


@every_mechanism
@every_budget
def test_uniform_poison_fills_its_range_evenly(mechanism: str, epsilon: float) -> None:
    where = target(mechanism, epsilon)
    part = where.mechanism
    low, high = where.position("(L+7R)/8"), part.output_high
    reports = Uniform("(L+7R)/8", "R").poison(where, 20_000, np.random.default_rng(1))
    middles = reports + (0.5 if part.discrete else 0.0)
    shares = np.clip((middles - low) / (high - low), 0, 1)
    assert abs(shares.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 20_000) + 1 / 500
    assert shares.min() < 0.01
    assert shares.max() > 0.99


@every_mechanism
@every_budget
def test_point_poison_is_in_one_place(mechanism: str, epsilon: float) -> None:
    where = target(mechanism, epsilon)
    part = where.mechanism
    highest = Point("R").poison(where, 10, np.random.default_rng(1))
    lowest = Point("L").poison(where, 10, np.random.default_rng(1))
    top = part.cells - 1 if part.discrete else part.output_high
    assert set(highest.tolist()) == {top}
    assert set(lowest.tolist()) == {part.output_low}


@every_mechanism
def test_integer_and_continuous_mechanisms_put_a_position_in_the_same_part(mechanism: str) -> None:
    where = target(mechanism, 0.5)
    part = where.mechanism
    width = part.output_high - part.output_low
    for share in (0.0, 0.25, 0.75, 1.0):
        place = where.position(f"L+{share}*(R-L)")
        assert (place - part.output_low) / width == pytest.approx(share, abs=1e-9)


def test_positions_may_be_written_in_terms_of_the_honest_mean() -> None:
    where = Target(make("piecewise", 1.0), honest_mean=-0.4)
    assert where.position("O") == pytest.approx(-0.4)
    assert where.position("3C/4") == pytest.approx(0.75 / np.tanh(0.25))
    wave = make("square-wave", 1.0)
    assert Target(wave, 0.3).position("1+b/2") == pytest.approx(1 + wave.landmarks()["b"] / 2)


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(0, 500))
def test_exactly_the_share_of_evasive_poison_is_on_the_other_side(share: float, count: int) -> None:
    where = Target(make("piecewise", 1.0), honest_mean=0.0)
    reports = Evasion(share=share).poison(where, count, np.random.default_rng(1))
    assert (reports < 0).sum() == round(share * count)


def test_nobody_attacks_when_the_attack_is_none() -> None:
    assert not NoAttack().active
    assert all(instance(name).active for name in attacks if name != "none")


# The written form


@pytest.mark.parametrize(
    ("text", "attack"),
    [
        ("none", NoAttack()),
        ("uniform", Uniform()),
        ("uniform:O,C/2", Uniform("O", "C/2")),
        ("uniform: O , C/2", Uniform("O", "C/2")),
        ("uniform:high=C/2", Uniform("3C/4", "C/2")),
        ("uniform:high=C,low=-C", Uniform("-C", "C")),
        ("point:-C", Point("-C")),
        ("point:at=O", Point("O")),
        ("evasion:0.3", Evasion(0.3)),
        ("evasion:3/10,-C/4", Evasion(0.3, "-C/4")),
        ("evasion:share=0.5,low=3C/4", Evasion(0.5, low="3C/4")),
    ],
)
def test_an_attack_is_read_from_its_written_form(text: str, attack: Attack) -> None:
    assert parse_attack(text) == attack


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("", "attack must be one of"),
        ("uniform:middle=3", "uniform takes low, high, each once; received 'middle=3'"),
        ("uniform:0,1,2", "uniform takes low, high, each once; received '2'"),
        ("uniform:,C", "uniform takes low, high, each once; received ''"),
        ("uniform:C/2,low=0", "each once; received 'low=0'"),
        ("none:1", "none takes no parameters"),
        ("evasion:share=1.5", r"share must be in \[0, 1\]; received 1.5"),
        ("evasion:share=-0.1", r"share must be in \[0, 1\]"),
        ("evasion:share=1/0", "share must be a number; received 1/0"),
        ("evasion:much", "share must be a number; received much"),
    ],
)
def test_a_written_form_that_says_nothing_known_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        parse_attack(text)


@pytest.mark.parametrize(
    "formula",
    ["C+", "(C", "C)", "2**C", "C/0", "C/(O-O)", "x", "3%2", "C;C", " ", "()", "b", "import"],
)
def test_a_position_that_is_no_formula_is_refused(formula: str) -> None:
    where = Target(make("piecewise", 1.0), honest_mean=0.25)
    with pytest.raises(InvalidParameter, match="position must be a formula of"):
        Point(formula).poison(where, 3, np.random.default_rng(1))


@every_mechanism
@pytest.mark.parametrize("formula", ["R+1", "L-1", "2R-L", "1e300*10", "1e999", "1e999-1e999"])
def test_a_position_outside_the_report_domain_is_refused(mechanism: str, formula: str) -> None:
    with pytest.raises(InvalidParameter, match="position must be in the output domain"):
        Point(formula).poison(target(mechanism, 0.5), 3, np.random.default_rng(1))


@every_mechanism
def test_a_range_that_goes_downwards_is_refused(mechanism: str) -> None:
    with pytest.raises(InvalidParameter, match="attack range must go upwards; received R, R/2"):
        Uniform("R", "R/2").poison(target(mechanism, 0.5), 3, np.random.default_rng(1))


# Formulas against Python's own arithmetic


NAMES = {"C": 8.25, "O": -0.375, "b": 0.5}
atoms = st.one_of(
    st.sampled_from(list(NAMES)),
    st.integers(0, 99).map(str),
    st.floats(0.001, 99).map(lambda number: f"{number:.3f}"),
)


def longer(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", " + ", " - ", " * ", " / "])
    return st.one_of(
        st.tuples(parts, operators, parts).map("".join),
        parts.map(lambda part: f"({part})"),
        st.tuples(st.sampled_from(["-", "+"]), atoms).map("".join),
    )


@settings(deadline=None)
@given(st.recursive(atoms, longer, max_leaves=8))
def test_a_formula_has_the_value_that_python_gives_it(formula: str) -> None:
    try:
        expected = eval(formula, {"__builtins__": {}}, dict(NAMES))
    except ZeroDivisionError:
        with pytest.raises(InvalidParameter):
            evaluate(formula, NAMES)
    else:
        assert evaluate(formula, NAMES) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 99), st.sampled_from(list(NAMES)), st.integers(1, 9))
def test_a_number_before_a_name_multiplies_it(factor: int, name: str, divisor: int) -> None:
    expected = factor * NAMES[name] / divisor
    assert evaluate(f"{factor}{name}/{divisor}", NAMES) == pytest.approx(expected)
    assert evaluate(f"-{factor}({name})/{divisor}", NAMES) == pytest.approx(-expected)


@pytest.mark.parametrize("formula", ["1.2.3", "3 4", "C 2", "C.5", ")", "(C", "C+", ""])
def test_a_formula_that_could_be_read_in_two_ways_is_refused(formula: str) -> None:
    with pytest.raises(InvalidParameter, match="must be a formula of C"):
        evaluate(formula, {"C": 8.0})
