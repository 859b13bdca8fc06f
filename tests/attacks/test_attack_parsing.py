"""The written form of attacks, and formulas against Python's own arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.attacks import (
    Adaptive,
    Attack,
    Beta,
    Evasion,
    Fishing,
    Gaussian,
    Imitator,
    InputManipulation,
    MaximalGain,
    NoAttack,
    Noise,
    Opposite,
    Point,
    RandomReports,
    SomeGroups,
    Targets,
    Triangular,
    Uneven,
    Uniform,
    attacks,
    evaluate,
    parse_attack,
)
from unpoison.errors import InvalidParameter


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
        ("random", RandomReports()),
        ("maximal-gain", MaximalGain(1)),
        ("maximal-gain:3", MaximalGain(3)),
        ("maximal-gain:count=6/2", MaximalGain(3)),
        ("targets", Targets(())),
        ("targets:tea", Targets(("tea",))),
        ("targets:tea, herbal tea ,7-up", Targets(("tea", "herbal tea", "7-up"))),
        ("targets:names=tea,coffee", Targets(("tea", "coffee"))),
        ("targets:tea,E=mc2,=", Targets(("tea", "E=mc2", "="))),
        ("targets:E = mc2", Targets(("E = mc2",))),
        ("targets:names=names=tea,a:b", Targets(("names=tea", "a:b"))),
        ("targets:tea,tea", Targets(("tea", "tea"))),
        ("gaussian:O,C/2", Gaussian("O", "C/2")),
        ("beta:O,C,1/2,3", Beta("O", "C", 0.5, 3.0)),
        ("beta:b=2", Beta(b=2.0)),
        ("triangular:O,C", Triangular("O", "C")),
        ("triangular:peak=C", Triangular(peak="C")),
        ("noise", Noise()),
        ("input:-1/2", InputManipulation("-1/2")),
        ("input:herbal tea", InputManipulation("herbal tea")),
        ("input:value=E=mc2", InputManipulation("E=mc2")),
        ("adaptive:3,C/2,C,-1", Adaptive(3, "C/2", "C", "-1")),
        ("adaptive:input=O/2", Adaptive(input="O/2")),
        ("opposite:C/2,C", Opposite("C/2", "C")),
        ("some-groups", SomeGroups((0,), Uniform())),
        ("some-groups:1", SomeGroups((1,), Uniform())),
        ("some-groups;point:C", SomeGroups((0,), Point("C"))),
        ("some-groups:2, 0 ; uniform:O,C/2", SomeGroups((2, 0), Uniform("O", "C/2"))),
        ("some-groups:groups=4/2,3;input:a;b", SomeGroups((2, 3), InputManipulation("a;b"))),
        ("some-groups:0;some-groups:1;point", SomeGroups((0,), SomeGroups((1,), Point()))),
        ("imitator", Imitator("up", 0.0, NoAttack())),
        ("imitator:down", Imitator("down")),
        ("imitator:up,1/2;uniform:O,C", Imitator("up", 0.5, Uniform("O", "C"))),
        ("imitator:herbal tea,decoy=1;targets:a,b", Imitator("herbal tea", 1, Targets(("a", "b")))),
        ("fishing:1,2;point:C", Fishing((1, 2), Point("C"))),
        ("uneven:1/2,3;point:C", Uneven((0.5, 3.0), Point("C"))),
        ("fishing:0;some-groups:0;noise", Fishing((0,), SomeGroups((0,), Noise()))),
        ("targets:a;b,c", Targets(("a;b", "c"))),
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
        ("random:1", "random takes no parameters"),
        ("maximal-gain:many", "count must be a whole number; received many"),
        ("maximal-gain:1.5", "count must be a whole number; received 1.5"),
        ("maximal-gain:1e999", "count must be a whole number; received 1e999"),
        ("maximal-gain:0", "count must be a whole number from 1; received 0"),
        ("maximal-gain:1,2", "maximal-gain takes count, each once; received '2'"),
        ("targets:tea,,coffee", r"targets takes names \(one or more\), each once; received ''"),
        ("targets:tea,", "each once; received ''"),
        ("targets:names=", "each once; received 'names='"),
        ("targets:tea,names=coffee", "each once; received 'names=coffee'"),
        ("gaussian:0,1,2", "gaussian takes low, high, each once; received '2'"),
        ("beta:0,1,0", r"a must be in \[0.01, 10000\]; received 0.0"),
        ("beta:a=1e999", r"a must be in \[0.01, 10000\]; received inf"),
        ("beta:b=-1", r"b must be in \[0.01, 10000\]; received -1.0"),
        ("beta:b=C", "b must be a number; received C"),
        ("noise:1", "noise takes no parameters"),
        ("input:tea,coffee", "input takes value, each once; received 'coffee'"),
        ("adaptive:0", "groups must be a whole number from 1; received 0"),
        ("adaptive:3/2", "groups must be a whole number; received 3/2"),
        ("some-groups:0,0", r"groups must be different whole numbers from 0; received \(0, 0\)"),
        ("some-groups:-1", r"groups must be different whole numbers from 0; received \(-1,\)"),
        ("some-groups:1/2", "groups must be a whole number; received 1/2"),
        ("some-groups:first", "groups must be a whole number; received first"),
        ("some-groups:0,,1", "one or more.*, each once; then another attack after a semicolon"),
        ("some-groups:0;", "attack must be one of"),
        ("some-groups:0;pint:C", "did you mean 'point'"),
        ("some-groups:attack=point", "groups must be a whole number; received attack=point"),
        ("fishing:0,0", r"groups must be different whole numbers from 0; received \(0, 0\)"),
        ("uneven:1,-1", r"weights must be numbers from 0, not all .*; received \(1.0, -1.0\)"),
        ("uneven:0,0", "weights must be numbers from 0, not all"),
        ("uneven:1e999", r"weights must be numbers from 0, .*; received \(inf,\)"),
        ("fishing:0;uneven:1,2", "attack must be one in all groups; received Uneven"),
        ("uneven:1,2;fishing:0", "attack must be one in all groups; received Fishing"),
        ("some-groups:0;fishing:0", "attack must be one in all groups; received Fishing"),
        ("imitator:up,-1", "decoy must be a number from 0; received -1.0"),
        ("imitator:up,1e999", "decoy must be a number from 0; received inf"),
        ("imitator:up,1;uneven:1,2", "attack must be one in all groups; received Uneven"),
        ("uniform;point", "attack must be one of"),
    ],
)
def test_a_written_form_that_says_nothing_known_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        parse_attack(text)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> type[Attack]:
    """An attack whose variadic parameter stands after another."""

    @dataclass(frozen=True)
    class Mixed(RandomReports):
        share: float = 0.5
        size: int = 2
        names: tuple[str, ...] = ()

    monkeypatch.setitem(attacks._items, "mixed", Mixed)
    return Mixed


@pytest.mark.parametrize(
    ("parameters", "share", "size", "names"),
    [
        ("0.1,3,a,b=c", 0.1, 3, ("a", "b=c")),
        ("names=a,b,share=0.1,c", 0.1, 2, ("a", "b", "c")),
        ("size=3,share=0.1,a", 0.1, 3, ("a",)),
        ("0.1,names=a,b", 0.1, 2, ("a", "b")),
    ],
)
def test_a_variadic_parameter_takes_what_names_no_other(
    registered: type[Attack], parameters: str, share: float, size: int, names: tuple[str, ...]
) -> None:
    expected = registered(share=share, size=size, names=names)  # type: ignore[call-arg]
    assert parse_attack(f"mixed:{parameters}") == expected


@pytest.mark.parametrize("parameters", ["b=c", "0.1,b=c,a", "0.1,3,a,size=4"])
def test_an_unknown_or_repeated_key_before_a_variadic_parameter_is_refused(
    registered: type[Attack], parameters: str
) -> None:
    message = r"mixed takes share, size, names \(one or more\), each once"
    with pytest.raises(InvalidParameter, match=message):
        parse_attack(f"mixed:{parameters}")


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
