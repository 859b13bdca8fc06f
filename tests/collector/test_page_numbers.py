"""The page's numbers in Chromium: those of the verdict, digit for digit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.running_collectors import InProcessCollector, in_process_collector
from unpoison import Plan
from unpoison.estimate.value_format import ValueFormat

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VECTORS = Path(__file__).parents[1] / "estimate" / "vectors" / "values.json"
WRITE = """async (cases) => {
    const { valueFormat } = await import("/static/value-format.js");
    return cases.map(({ interval, values, ...plan }) => values.map(valueFormat(plan, interval)));
}"""
BETWEEN = """async ([plan, interval]) => {
    const { between, valueFormat } = await import("/static/value-format.js");
    return between(interval, valueFormat(plan, interval));
}"""
WIDTHS = [digit * 10.0**power for power in range(-6, 10) for digit in (1.0, 3.7, 9.99)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("page")) as server:
        yield server


@pytest.fixture(scope="module", params=["en-US", "de-DE"])
def open_page(
    request: pytest.FixtureRequest, browser: Browser, server: InProcessCollector
) -> Iterator[Page]:
    """A page in a browser of this language: numbers must not depend on it, as verdicts do not."""
    context = browser.new_context(locale=request.param)
    page = context.new_page()
    page.goto(server.url)
    yield page
    context.close()


def test_the_page_writes_the_shared_vectors(open_page: Page) -> None:
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))
    asked = [{**case, "values": [value for value, _ in case["texts"]]} for case in cases]
    expected = [[text for _, text in case["texts"]] for case in cases]
    assert open_page.evaluate(WRITE, asked) == expected


def case_of_width(width: float, rng: np.random.Generator) -> dict[str, Any]:
    """An interval of this width somewhere in a wider range, with values in it and beyond it."""
    low, high = -1000 * width, 1000 * width
    start = float(rng.uniform(low, high - width))
    values = [start, start + width, 0.0, -start, *rng.uniform(low, high, 20).tolist()]
    return {"low": low, "high": high, "interval": [start, start + width], "values": values}


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_writes_what_a_verdict_would(open_page: Page, width: float) -> None:
    case = case_of_width(width, np.random.default_rng(1))
    write = ValueFormat.of(Plan.new(low=case["low"], high=case["high"]), tuple(case["interval"]))
    assert open_page.evaluate(WRITE, [case]) == [[write(value) for value in case["values"]]]


def test_an_interval_in_a_narrow_range_is_not_rounded_away(open_page: Page) -> None:
    interval = [0.2511, 0.2639]
    assert open_page.evaluate(BETWEEN, [{"low": 0, "high": 1}, interval]) == "0.2511 to 0.2639"
    with_unit = {"low": 0, "high": 1, "unit": "s"}
    assert open_page.evaluate(BETWEEN, [with_unit, interval]) == "0.2511 to 0.2639 s"


def test_counts_are_written_alike_in_every_language(open_page: Page) -> None:
    count = 'async () => (await import("/static/format.js")).count(23981)'
    assert open_page.evaluate(count) == "23,981"
