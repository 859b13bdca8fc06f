"""Categories by name: in any container, of any size, with the same numbers and refusals."""

from __future__ import annotations

import enum
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Plan
from unpoison.errors import InvalidParameter, InvalidValue
from unpoison.reports import values
from unpoison.reports.values import checked_values

NAMES = ("tea", "herbal tea", "café", "None", "nan", "7", "-3", "a\0b", "a", "<NA>")
Container = Callable[[list[str]], Any]
CONTAINERS: dict[str, Container] = {
    "list": list,
    "tuple": tuple,
    "numpy str": np.array,
    "numpy str, every second": lambda names: np.repeat(np.array(names), 2)[::2],
    "numpy str, other byte order": lambda names: np.array(names).astype(">U10"),
    "numpy str, read only": lambda names: np.frombuffer(np.array(names, "U10").tobytes(), "U10"),
    "numpy variable-width str": lambda names: np.array(names, dtype=np.dtypes.StringDType()),
    "numpy object": lambda names: np.array(names, dtype=object),
    "pandas str": pd.Series,
    "pandas object": lambda names: pd.Series(names, dtype=object),
    "pandas category": lambda names: pd.Series(names, dtype="category"),
    "pandas index": pd.Index,
    "pandas filtered": lambda names: pd.Series([*names, *names])[: len(names)],
    "pyarrow": pa.array,
    "pyarrow large": lambda names: pa.array(names, pa.large_string()),
    "pyarrow view": lambda names: pa.array(names, pa.string_view()),
    "pyarrow slice": lambda names: pa.array(["x", *names])[1:],
    "pyarrow dictionary": lambda names: pa.array(names).dictionary_encode(),
    "pyarrow chunks": lambda names: pa.chunked_array([names[:7], [], names[7:]], pa.string()),
    "pyarrow dictionary chunks": lambda names: pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (names[:7], names[7:])]
    ),
}
"""Ways to hold a column of names."""
every_container = pytest.mark.parametrize("container", CONTAINERS)
every_size = pytest.mark.parametrize("arrow_rows", [0, 10**9], ids=["large", "small"])


def numbers(names: tuple[str, ...], values: Any) -> list[float]:
    plan = Plan.new("k-rr", epsilon=1.0, min_epsilon=1.0, categories=names)
    checked = checked_values(plan, values)
    assert checked.dtype == np.float64
    return [float(number) for number in checked]


@pytest.fixture(autouse=True)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every column for a large one, or for a small one, whatever its size."""
    if "arrow_rows" in request.fixturenames:
        monkeypatch.setattr(values, "ARROW_ROWS", request.getfixturevalue("arrow_rows"))


# Names in containers


@every_container
@every_size
def test_names_in_any_container_get_their_numbers(container: str, arrow_rows: int) -> None:
    places = [*range(len(NAMES)), *np.random.default_rng(1).integers(len(NAMES), size=50)]
    column = CONTAINERS[container]([NAMES[place] for place in places])
    assert numbers(NAMES, column) == places


@every_container
@every_size
def test_no_names_get_no_numbers(container: str, arrow_rows: int) -> None:
    if "read only" not in container:
        assert numbers(NAMES, CONTAINERS[container]([])) == []


@every_container
@every_size
def test_the_first_unknown_name_is_placed_but_never_repeated(
    container: str, arrow_rows: int
) -> None:
    column = CONTAINERS[container](["tea", "a", "a", "secret", "tea", "secrets", "a", "tea"])
    with pytest.raises(InvalidValue) as fault:
        numbers(NAMES, column)
    message = "row 4: values must be categories of the plan; received another"
    assert str(fault.value) == message
    assert fault.value.__context__ is None


@pytest.mark.parametrize(
    "near", ["Tea", "tea ", " tea", "te", "teas", "tea\0tea", "cafe\u0301", ""]
)
@every_container
@every_size
def test_a_name_that_is_nearly_the_same_is_unknown(
    container: str, near: str, arrow_rows: int
) -> None:
    with pytest.raises(InvalidValue, match=r"^row 2: "):
        numbers(NAMES, CONTAINERS[container](["tea", near]))


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=6), min_size=1, max_size=30), st.data())
def test_all_containers_agree_on_any_text(names: list[str], data: st.DataObject) -> None:
    """NumPy drops null characters at the end, so names that have them there are left out."""
    known = tuple(dict.fromkeys(name for name in names if name and name[-1] != "\0"))
    if len(known) < 2:
        return
    places = data.draw(st.lists(st.integers(0, len(known) - 1), min_size=1, max_size=60))
    chosen = [known[place] for place in places]
    for arrow_rows in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(values, "ARROW_ROWS", arrow_rows)
            for column in (chosen, np.array(chosen), pd.Series(chosen), pa.array(chosen)):
                assert numbers(known, column) == places


def test_a_large_column_is_read_like_a_small_one() -> None:
    places = np.random.default_rng(1).integers(len(NAMES), size=4 * values.ARROW_ROWS)
    names = np.array(NAMES, dtype=object)[places]
    for column in (names, names.tolist(), names.astype(str), pa.array(names), pd.Series(names)):
        assert numbers(NAMES, column) == places.tolist()


@every_container
def test_each_name_of_a_large_column_is_looked_up_once(
    container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python is slow: a million values must not be a million steps of it."""
    looked_up = Mock(wraps=values._text)
    monkeypatch.setattr(values, "_text", looked_up)
    numbers(NAMES, CONTAINERS[container](list(NAMES) * values.ARROW_ROWS))
    assert looked_up.call_count == len(NAMES)


# Values that are not text


class Drink(str, enum.Enum):  # noqa: UP042
    """Of the kind that prints as `Drink.TEA`, yet is equal to "tea"."""

    TEA = "tea"


class Number(enum.IntEnum):
    SEVEN = 7


@pytest.mark.parametrize(
    "values",
    [
        [7, -3],
        np.array([7, -3]),
        np.array([7, -3], dtype=np.int8),
        np.array([7, -3], dtype=">i4"),
        np.array([7, -3], dtype=object),
        pd.Series([7, -3]),
        pd.Series([7, -3], dtype="Int64"),
        pd.Series([7, -3], dtype="category"),
        pa.array([7, -3]),
        pa.array([7, -3], pa.int8()),
        pa.array([7, -3]).dictionary_encode(),
        pa.array([Decimal(7), Decimal(-3)]),
        [7, "-3"],
        [np.int64(7), np.str_("-3")],
        [Number.SEVEN, -3],
    ],
)
@every_size
def test_a_category_may_be_given_by_what_prints_as_its_name(values: Any, arrow_rows: int) -> None:
    assert numbers(NAMES, values) == [NAMES.index("7"), NAMES.index("-3")]


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (("0.5", "-0.0", "0.0", "1e+300"), [0.5, -0.0, 0.0, 1e300]),
        (("True", "False"), [True, False]),
        (("1", "1.0", "True"), [1, 1.0, True]),
        (("1", "2.5"), [1, 2.5]),
        (("1", str(2**70)), [1, 2**70]),
        (("1", str(2**64 - 1)), [1, 2**64 - 1]),
        (("b'x'", "x"), [b"x", "x"]),
        (("\ud800", "x"), ["\ud800", "x"]),
        (("tea", "milk"), [Drink.TEA, "milk"]),
    ],
)
@every_size
def test_unlike_values_stay_unlike(names: tuple[str, ...], values: Any, arrow_rows: int) -> None:
    expected = list(range(len(values)))
    assert numbers(names, values) == expected
    assert numbers(names, np.array(values, dtype=object)) == expected
    assert numbers(names, pd.Series(values, dtype=object)) == expected
    if len({type(value) for value in values}) == 1 and max(map(len, names)) < 20:
        assert numbers(names, np.array(values)) == expected
    if all(isinstance(value, bool | float) for value in values):
        assert numbers(names, pd.Series(values)) == expected
        assert numbers(names, pa.array(values)) == expected


@pytest.mark.parametrize(
    "values",
    [
        ["tea", None],
        ["tea", float("nan")],
        ["tea", pd.NA],
        ["tea", pd.NaT],
        [7, None],
        [7, float("nan")],
        np.array([7.0, float("nan")]),
        np.ma.array([7, 7], mask=[False, True]),
        pd.Series(["tea", None]),
        pd.Series(["tea", None], dtype=object),
        pd.Series(["tea", None], dtype="category"),
        pd.Series([7, None], dtype="Int64"),
        pa.array(["tea", None]),
        pa.array(["tea", None]).dictionary_encode(),
        pa.chunked_array([["tea"], [None]], pa.string()),
        pa.array([7, None]),
        pa.array([7.0, None]),
        np.array(["tea", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)),
    ],
)
@every_size
def test_a_missing_value_is_no_category_whatever_they_are_called(
    values: Any, arrow_rows: int
) -> None:
    names = (*NAMES, "NaT", "NaN", "7.0")
    with pytest.raises(InvalidValue, match=r"^row 2: values must be categories of the plan"):
        numbers(names, values)


# What is no column


@pytest.mark.parametrize(
    ("values", "received"),
    [
        ("tea", "0 dimensions"),
        ({"tea"}, "0 dimensions"),
        (None, "0 dimensions"),
        (np.array("tea"), "0 dimensions"),
        ([["tea"], ["a"]], "2 dimensions"),
        (np.array([["tea", "a"]]), "2 dimensions"),
        (pd.DataFrame({"drink": ["tea", "a"]}), "2 dimensions"),
        (pa.table({"drink": ["tea", "a"]}), "2 dimensions"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], "list"),
    ],
)
@every_size
def test_what_is_no_column_is_refused(values: Any, received: str, arrow_rows: int) -> None:
    with pytest.raises(InvalidParameter, match=rf"^values must be one column; received {received}"):
        numbers(NAMES, values)


@every_size
def test_a_row_of_another_length_is_an_unknown_category(arrow_rows: int) -> None:
    with pytest.raises(InvalidValue, match=r"^row 2: "):
        numbers(NAMES, ["tea", ["tea", "a"]])


# On devices


FEW_VALUES = ["['tea']", "np.array(['tea', 'milk'])", "np.array([7])"]


@cache
def imports_of_pyarrow() -> list[str]:
    """Whether pyarrow is imported after few values of each kind, perturbed in one new process."""
    code = (
        "import sys, numpy as np; from unpoison import Plan, perturb;"
        "plan = Plan.new('k-rr-integer', epsilon=1.0, categories=['tea', 'milk', '7']);"
    )
    calls = [f"perturb({values}, plan); print('pyarrow' in sys.modules)" for values in FEW_VALUES]
    program = [sys.executable, "-c", code + ";".join(calls)]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("values", FEW_VALUES)
def test_few_values_are_perturbed_without_pyarrow(values: str) -> None:
    assert imports_of_pyarrow()[FEW_VALUES.index(values)] == "False"
