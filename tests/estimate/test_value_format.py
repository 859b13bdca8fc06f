"""Numbers as people read them: the digits that an interval's width asks for, commas, the unit."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison import Plan
from unpoison.estimate.value_format import ValueFormat

VECTORS = json.loads((Path(__file__).parent / "vectors" / "values.json").read_text("utf-8"))
"""Texts that the page must write as well: tests/collector/test_page_numbers.py."""


def format_of(case: dict[str, Any]) -> ValueFormat:
    plan = Plan.new(low=case["low"], high=case["high"], unit=case.get("unit"))
    return ValueFormat.of(plan, case["interval"] and tuple(case["interval"]))


@pytest.mark.parametrize("case", VECTORS, ids=str)
def test_values_are_written_as_the_vectors_say(case: dict[str, Any]) -> None:
    write = format_of(case)
    assert [write(value) for value, _ in case["texts"]] == [text for _, text in case["texts"]]


@pytest.mark.parametrize("power", range(-6, 10))
@pytest.mark.parametrize("digit", [1.0, 2.5, 9.99])
def test_the_width_of_an_interval_is_seen_in_its_ends(power: int, digit: float) -> None:
    """As in "0.2511 to 0.2639": rounding must not hide more than a hundredth of the width."""
    width = digit * 10.0**power
    for low in (0.0, -3 * width, 0.257 * width, 1234.5 * width):
        interval = (low, low + width)
        plan = Plan.new(low=-(10.0**power) * 10**4, high=10.0**power * 10**4)
        text = ValueFormat.of(plan, interval).between(interval)
        ends = [float(end.replace(",", "")) for end in text.split(" to ")]
        assert ends[1] - ends[0] == pytest.approx(width, rel=0.0101, abs=1.0 if power > 1 else 0.0)


@given(st.floats(-1e300, 1e300), st.integers(-30, 30))
def test_a_text_is_within_half_of_its_last_digit(value: float, place: int) -> None:
    text = ValueFormat(place).number(value)
    written = Decimal(text.replace(",", ""))
    last_digit = Decimal(1).scaleb(int(written.as_tuple().exponent))
    with localcontext(prec=1000):
        assert abs(written - Decimal(value)) <= last_digit / 2
    assert text.strip("-0.") or not text.startswith("-"), "zero has no sign"


def test_the_unit_stands_once_behind_an_interval() -> None:
    write = ValueFormat.of(Plan.new(low=0, high=60, unit="km/h"), (10.0, 20.0))
    assert write.between((10.0, 20.0)) == "10.0 to 20.0 km/h"
    assert write(12.34) == "12.3 km/h"
