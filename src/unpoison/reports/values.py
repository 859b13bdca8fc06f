"""Raw values on their way to reports: checked against the plan, categories turned into numbers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter, InvalidValue
from unpoison.plan import Plan
from unpoison.plan.lattice import between_values
from unpoison.types import FloatArray, IntArray

ARROW_ROWS = 2**13
"""Values from which on it pays to import pyarrow to find the distinct ones."""


COLUMNS = {"pyarrow": ("Array", "ChunkedArray"), "pandas": ("Series", "Index")}
"""Kinds of columns that pyarrow knows, by the module that has them."""


MISSING = frozenset(("None", "nan", "NaN", "NaT", "<NA>"))
"""The texts of missing values in Python, NumPy and pandas."""


def tiers_of(plan: Plan, users: int, budgets: Any) -> IntArray:
    """The tier of each user: the largest ε that the personal budget allows.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1, tiers=[{"epsilon": 0.25}])
    >>> tiers_of(plan, 3, budgets=[1.5, 0.25, 0.75]).tolist()
    [0, 1, 1]
    """
    if budgets is None:
        return np.zeros(users, dtype=np.int64)
    try:
        budgets = np.asarray(budgets, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("budgets", "must be numbers", type(budgets).__name__) from None
    if budgets.shape != (users,):
        raise InvalidParameter("budgets", f"must be one a user, {users}", budgets.shape)
    tier_of = {float(budget): plan.tier_for_budget(float(budget)) for budget in np.unique(budgets)}
    tiers = [tier_of[float(budget)] if not np.isnan(budget) else None for budget in budgets]
    if None in tiers:
        smallest = min(tier.epsilon for tier in plan.all_tiers)
        rule = f"budgets must be at least the smallest tier's epsilon {smallest:g}"
        raise InvalidValue(rule, "less, or not a number", tiers.index(None) + 1)
    return np.array(tiers, dtype=np.int64)


def checked_values(plan: Plan, values: Any) -> FloatArray:
    """Values as floats, all within the plan's range; an error names the row, never the value.

    >>> checked_values(Plan.new(epsilon=0.25, low=0, high=9), [3, float("nan")])
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidValue: row 2: values must be numbers in [0, 9]; received not a number
    >>> checked_values(Plan.new(epsilon=0.25, low=1, high=5, step=1), [4, 4.5])
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidValue: row 2: values must be 1 and whole steps of 1 up to 5; received ...
    """
    if plan.categories is not None:
        return _category_numbers(plan.categories, values)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("values", "must be numbers", type(values).__name__) from None
    if numbers.ndim != 1:
        raise InvalidParameter("values", "must be one column", f"{numbers.ndim} dimensions")
    low, high = plan.bounds
    outside = ~((numbers >= low) & (numbers <= high))
    if outside.any():
        row = int(outside.argmax())
        rule = f"must be numbers in [{low:g}, {high:g}]"
        raise InvalidValue(f"values {rule}", fault_kind(numbers[row], low), row + 1)
    _check_steps(plan, numbers)
    return numbers


def _check_steps(plan: Plan, numbers: FloatArray) -> None:
    """Refuse numbers between two values of a plan with a step."""
    if plan.steps is None:
        return
    between = between_values(plan.shares_of_range(numbers), plan.steps)
    if between.any():
        low, high = plan.bounds
        rule = f"values must be {low:g} and whole steps of {plan.step:g} up to {high:g}"
        raise InvalidValue(rule, "a number between two steps", int(between.argmax()) + 1)


def fault_kind(value: float, low: float) -> str:
    """The kind of fault of a value, in words that do not show the value.

    >>> fault_kind(float("inf"), low=0.0), fault_kind(-3.0, low=0.0)
    ('an infinity', 'a value below low')
    """
    if np.isnan(value):
        return "not a number"
    if np.isinf(value):
        return "an infinity"
    return "a value below low" if value < low else "a value above high"


def _category_numbers(categories: tuple[str, ...], values: Any) -> FloatArray:
    """The index of each value's category, which is found by the value's text.

    Each distinct value is looked up once; the last place, -1, is for missing ones.
    """
    numbers: dict[str | None, float] = {name: float(at) for at, name in enumerate(categories)}
    places, distinct = _distinct(values)
    of_distinct = [numbers.get(_text(value), np.nan) for value in distinct]
    # The extra NaN at the end is what index −1, a missing value, points to.
    column: FloatArray = np.array([*of_distinct, np.nan])[places]
    unknown = np.isnan(column)
    if unknown.any():
        row = int(unknown.argmax()) + 1
        raise InvalidValue("values must be categories of the plan", "another", row)
    return column


def _text(value: object) -> str | None:
    """A value's text; None for missing values, even if a category has such a name."""
    if isinstance(value, str):
        return value
    text = str(value)
    return None if text in MISSING else text


def _distinct(values: Any) -> tuple[Any, list[Any]]:
    """The distinct values (some may repeat), and the index of each value among them."""
    if _is_column(values):
        return _by_arrow(values) or _distinct(np.asarray(values))
    whole = isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values)
    column = values if whole else _objects(values)
    if column.ndim != 1:
        raise InvalidParameter("values", "must be one column", f"{column.ndim} dimensions")
    encoded = None
    if len(column) >= ARROW_ROWS:
        fixed = column.dtype.kind in "biufU" and column.itemsize > 0
        encoded = _by_bytes(column) if fixed else _by_arrow(column)
    return encoded or (slice(len(column)), column.tolist())


def _is_column(values: Any) -> bool:
    """Whether values are a pyarrow or pandas column; neither module is imported to find out."""
    modules = {name: sys.modules.get(name) for name in COLUMNS}
    kinds = [getattr(modules[name], kind, ()) for name in COLUMNS for kind in COLUMNS[name]]
    return isinstance(values, tuple(kinds))


def _objects(values: Any) -> np.ndarray:
    """Values as an array of Python objects; masked ones are None."""
    if np.ma.isMaskedArray(values):
        values = values.tolist()
    try:
        return np.asarray(values, dtype=object)
    except (TypeError, ValueError):
        raise InvalidParameter("values", "must be one column", type(values).__name__) from None


def _by_bytes(column: np.ndarray) -> tuple[Any, list[Any]]:
    """Distinct values of a fixed-size type, compared by their bytes."""
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(column))
    size = pa.binary(column.itemsize)
    rows = pa.FixedSizeBinaryArray.from_buffers(size, len(column), [None, data])
    encoded = rows.dictionary_encode()
    distinct = np.frombuffer(b"".join(encoded.dictionary.to_pylist()), dtype=column.dtype)
    return encoded.indices.to_numpy(), distinct.tolist()


def _by_arrow(column: Any) -> tuple[Any, list[Any]] | None:
    """Distinct values of a column of text or whole numbers; None for other types."""
    import pyarrow as pa

    try:
        encoded = _encoded(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    if encoded is None:
        return None
    return encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary.to_pylist()


def _encoded(column: Any) -> Any:
    """A column's dictionary form, if it is of a type whose values print as in Python."""
    import pyarrow as pa

    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = pa.array(column, from_pandas=True)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    exact = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    if not any(is_kind(column.type) for is_kind in exact):
        return None
    encoded = column.dictionary_encode()
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
