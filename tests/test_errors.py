"""The error tree: each error names the parameter, the rule and the value received."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unpoison
from unpoison import errors

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
ONE_OF_EACH: list[Exception] = [
    errors.UnpoisonError("anything"),
    errors.InvalidParameter("epsilon", "must be positive", -1),
    errors.InvalidRow("must be a row", "another", 3),
    errors.InvalidReport("value must be in [-1, 1]", 2.0, 7, "reports.csv"),
    errors.InvalidValue("values must be numbers", "a value above high", 7),
    errors.InvalidFile("reports.csv", "is empty"),
    errors.BadFiles(["a.csv: is empty", "b.csv: is empty"], 9),
    errors.IncompatibleSummaries("plans differ"),
    errors.NotEnoughData("none"),
    errors.BudgetExceeded("max_epsilon", Fraction(1, 3), Fraction(1, 4)),
    errors.CollectorNotTrusted("the ticket is for another campaign"),
    errors.IssuerNotTrusted("the issuer's signature is not valid"),
    errors.IssuerRefused(403, "no-tokens-left"),
    errors.CollectorRefused(409, "ticket-used", "The ticket has been used."),
    errors.CollectorUnreachable("https://collector.example", 3, "connection refused"),
    errors.MissingExtra("drawing", "plots"),
]


def defined() -> dict[str, type]:
    members = inspect.getmembers(errors, inspect.isclass)
    return {
        name: error_class
        for name, error_class in members
        if error_class.__module__ == errors.__name__
    }


def drawing() -> dict[str, str]:
    """Each error of the drawing in the module's docstring, with the one it hangs on."""
    branch = re.compile(r"^    ([│ ├└─]*)([A-Z]\w+)(?:  |$)")
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := branch.match(line):
            depth, name = len(match[1]) // 4, match[2]
            path = [*path[:depth], name]
            parents[name] = path[-2] if depth else ""
    return parents


def test_the_drawing_is_the_tree() -> None:
    parents = drawing()
    assert parents.keys() == defined().keys()
    for name, parent in parents.items():
        bases = [base.__name__ for base in defined()[name].__bases__]
        if parent:
            assert bases[0] == parent
        else:
            assert not set(bases) & defined().keys()


def test_every_error_has_one_root_and_is_public() -> None:
    for name, error_class in defined().items():
        assert getattr(unpoison, name) is error_class
        assert name in unpoison.__all__
        assert issubclass(error_class, errors.UnpoisonError) != issubclass(error_class, Warning)
    assert issubclass(errors.ConvergenceWarning, UserWarning)


def test_errors_are_also_what_python_calls_them() -> None:
    others: dict[type, type] = {
        errors.MissingExtra: ImportError,
        errors.CollectorUnreachable: ConnectionError,
    }
    for error_class in defined().values():
        if (
            issubclass(error_class, errors.UnpoisonError)
            and error_class is not errors.UnpoisonError
        ):
            assert issubclass(error_class, others.get(error_class, ValueError))


@given(WORDS, WORDS, st.one_of(st.none(), st.integers(), st.floats(), WORDS))
def test_a_parameter_is_named_with_its_rule_and_what_came(
    parameter: str, rule: str, received: object
) -> None:
    fault = errors.InvalidParameter(parameter, rule, received)
    assert str(fault) == f"{parameter} {rule}; received {received}"
    assert fault.parameter == parameter


@pytest.mark.parametrize("kind", [errors.InvalidRow, errors.InvalidReport, errors.InvalidValue])
@given(
    row=st.integers(1, 10**12),
    before=st.integers(0, 10**12),
    rule=WORDS,
    received=st.integers(),
    source=WORDS,
)
def test_a_row_is_placed_in_its_file(
    kind: type[errors.InvalidRow], row: int, before: int, rule: str, received: int, source: str
) -> None:
    here = kind(rule, received, row)
    there = here.at(source, before)
    assert str(here) == f"row {row}: {rule}; received {received}"
    assert type(there) is kind
    assert there.row == row + before
    assert str(there) == f"{source}: row {row + before}: {rule}; received {received}"
    assert str(there.at(source, 0)) == str(there)


def test_a_file_and_an_extra_are_named() -> None:
    assert str(errors.InvalidFile("a.csv", "is empty")) == "a.csv: is empty"
    assert "pip install 'unpoison[plots]'" in str(errors.MissingExtra("drawing", "plots"))


def test_a_collector_that_does_not_answer_is_named_with_the_attempts() -> None:
    once = errors.CollectorUnreachable("https://collector.example", 1, "timed out")
    assert str(once) == "https://collector.example: no answer in 1 attempt (timed out)"
    assert "in 3 attempts" in str(errors.CollectorUnreachable("https://collector.example", 3, ""))


def test_one_of_each_is_looked_at() -> None:
    errors_seen = {type(error).__name__ for error in ONE_OF_EACH}
    assert errors_seen == defined().keys() - {"ConvergenceWarning"}


@pytest.mark.parametrize("fault", ONE_OF_EACH, ids=lambda fault: type(fault).__name__)
def test_errors_travel_between_processes(fault: Exception) -> None:
    for again in (pickle.loads(pickle.dumps(fault)), copy.copy(fault)):
        assert type(again) is type(fault)
        assert str(again) == str(fault)
        assert vars(again) == vars(fault)
