"""Checks of the parameters of defences."""

from __future__ import annotations

import math

from unpoison.errors import InvalidParameter


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse a value that is no whole number, or below `least`.

    >>> check_whole("subsets", 1.5, least=1)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: subsets must be a whole number, at least 1; received 1.5
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        rule = f"must be a whole number, at least {least}"
        raise InvalidParameter(name, rule, repr(value))


def is_number(value: object) -> bool:
    """Whether a value is a finite number.

    >>> is_number(0.5), is_number("auto"), is_number(math.nan)
    (True, False, False)
    """
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(float(value))
    )
