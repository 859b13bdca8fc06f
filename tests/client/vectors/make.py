"""Writes device.json: what the exact mechanisms must draw from given words, number by number.

The Python device and the browser's client are both held against it. Run as
`python tests/client/vectors/make.py` after a change of the mechanisms that is meant.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unpoison import Plan
from unpoison.errors import InvalidParameter
from unpoison.mechanisms.integer import (
    IntegerRandomizedResponse,
    IntegerWindow,
    IntegerWindowMechanism,
)

FILE = Path(__file__).with_name("device.json")
SEED = 20260131
WORDS = 2**64
FRACTION = 2**32

NUMERICAL = ("piecewise-integer", "square-wave-integer")
CATEGORICAL = "k-rr-integer"
BUDGETS = (0.0001, 0.0625, 0.1, 0.333333333333333, 1.0, 1.5, 2.0, 8.0, 16.0)
CELLS = (4096, 64, 7, 2)
CATEGORIES = (2, 3, 10, 1000)
RANGES = ((0.0, 1.0), (0.0, 86400.0), (-1e-3, 7.5), (-273.15, 1e21))
STEPPED = ((0.0, 1.0, 0.1), (1.0, 5.0, 1.0), (-273.15, 26.85, 0.25))
LARGEST = ("piecewise-integer", 12.0, 2**20)
REFUSED = (("piecewise-integer", 13.0, 2**20), ("piecewise-integer", 16.0, 2**20))

Case = dict[str, Any]


def category_names(count: int) -> list[str]:
    """The names that categories have in the vectors."""
    return [f"c{index}" for index in range(count)]


def plan_of(case: Case) -> Plan:
    """The plan of a case: one group that reports once."""
    domain: dict[str, Any] = {key: case.get(key) for key in ("low", "high", "step")}
    if case["mechanism"] == CATEGORICAL:
        domain = {"categories": category_names(case["cells"])}
    epsilon = case["epsilon"]
    return Plan.new(case["mechanism"], epsilon, epsilon, cells=case["cells"], **domain)


def window_of(plan: Plan) -> IntegerWindow:
    """The integer draw behind the plan's one group."""
    mechanism = plan.group_mechanisms[0]
    if isinstance(mechanism, IntegerWindowMechanism | IntegerRandomizedResponse):
        return mechanism.integer
    raise InvalidParameter("mechanism", "must be an integer one", plan.mechanism)


def fixed_offset(plan: Plan, value: float | str) -> int:
    """The window's offset for a value in natural units, with 32 fractional bits."""
    mechanism = plan.group_mechanisms[0]
    if isinstance(mechanism, IntegerWindowMechanism):
        return int(mechanism.fixed_offsets(plan.inputs_of(np.array([value])))[0])
    return (plan.categories or ()).index(str(value)) * FRACTION


def draw(window: IntegerWindow, fixed: int, words: list[int]) -> tuple[int, int]:
    """The cell and how many words it took: the plain loop, over a list of all cells' weights."""
    offset, fraction = divmod(fixed, FRACTION)
    offset += words[0] // FRACTION < fraction
    limit = WORDS - WORDS % window.total
    used = next(index for index, word in enumerate(words) if index and word < limit) + 1
    return _cell(window, offset, words[used - 1] % window.total), used


def _cell(window: IntegerWindow, offset: int, weight: int) -> int:
    inside = range(offset, offset + window.window)
    outside: list[int] = [*range(offset), *range(offset + window.window, window.cells)]
    if weight < len(inside) * window.inside_weight:
        return inside[weight // window.inside_weight]
    return outside[(weight - len(inside) * window.inside_weight) // window.outside_weight]


def _values(case: Case, rng: random.Random) -> Iterator[float | str]:
    if case["mechanism"] == CATEGORICAL:
        names = category_names(case["cells"])
        yield from (names[0], names[-1], rng.choice(names))
        return
    low, high = case["low"], case["high"]
    width = high - low
    yield from (low, high, low - width / 3, high + 1e-9 * width, low + width / 2)
    yield low + rng.random() * width
    if step := case.get("step"):
        yield from (low + step, low + 1.4 * step, low + 1.5 * step, low + 2.5 * step, high - step)
    elif (low, high) == (0.0, 1.0):
        yield from _halves(window_of(plan_of(case)).offsets - 1)


def _halves(steps: int) -> tuple[float, float]:
    """Two shares of the window's steps that lie halfway between fixed offsets.

    One has to be rounded up to the even number, the other down.
    """
    power_of_two = steps & -steps
    half = 0.5 / FRACTION / power_of_two
    return half, 3 * half


def _words(window: IntegerWindow, fixed: int, rng: random.Random) -> list[int]:
    fraction = fixed % FRACTION
    low_half = rng.randrange(FRACTION)
    rounding = rng.choice([rng.randrange(WORDS), fraction << 32 | low_half])
    if fraction:
        rounding = rng.choice([rounding, (fraction - 1) << 32 | low_half])
    limit = WORDS - WORDS % window.total
    refused = [rng.choice([limit, WORDS - 1]) for _ in range(rng.choice([0, 0, 0, 1, 2]))]
    edge = window.window * window.inside_weight
    multiple = rng.randrange(limit // window.total) * window.total
    near = multiple + rng.choice([0, edge - 1, edge, window.total - 1])
    accepted = rng.choice([near, rng.randrange(limit), rng.randrange(limit), limit - 1])
    return [rounding, *[word for word in refused if word >= limit], accepted, rng.randrange(WORDS)]


def _draws(case: Case, rng: random.Random) -> Iterator[Case]:
    plan = plan_of(case)
    window = window_of(plan)
    for value in _values(case, rng):
        fixed = fixed_offset(plan, value)
        words = _words(window, fixed, rng)
        cell, used = draw(window, fixed, words)
        texts = [f"{word:016x}" for word in words]
        yield {"value": value, "fixed": str(fixed), "words": texts, "used": used, "cell": cell}


def _mechanisms() -> Iterator[Case]:
    for index, epsilon in enumerate(BUDGETS):
        for name in NUMERICAL:
            for turn, cells in enumerate(CELLS):
                low, high = RANGES[(index + turn) % len(RANGES)]
                yield {**_case(name, epsilon, cells), "low": low, "high": high}
        for cells in CATEGORIES:
            yield _case(CATEGORICAL, epsilon, cells)
    yield {**_case(*LARGEST), "low": 0.0, "high": 1.0}
    for low, high, step in STEPPED:
        for name in NUMERICAL:
            yield {**_case(name, 1.0, 4096), "low": low, "high": high, "step": step}


def _case(mechanism: str, epsilon: float, cells: int) -> Case:
    return {"mechanism": mechanism, "epsilon": epsilon, "cells": cells}


def make() -> Case:
    """All vectors."""
    rng = random.Random(SEED)
    cases = []
    for case in _mechanisms():
        window = window_of(plan_of(case))
        numbers = {
            "inside_weight": str(window.inside_weight),
            "window": window.window,
            "total": str(window.total),
        }
        cases.append({**case, **numbers, "draws": list(_draws(case, rng))})
    refused = [{**_case(*parameters), "low": 0.0, "high": 1.0} for parameters in REFUSED]
    return {"mechanisms": cases, "refused": refused}


def text_of(vectors: Case) -> str:
    """JSON with one draw a line, so that a change shows where it is."""
    cases = []
    for case in vectors["mechanisms"]:
        head = json.dumps({key: value for key, value in case.items() if key != "draws"})
        draws = ",\n  ".join(json.dumps(draw) for draw in case["draws"])
        cases.append(f'{head[:-1]}, "draws": [\n  {draws}]}}')
    refused = json.dumps(vectors["refused"])
    return '{"mechanisms": [\n' + ",\n".join(cases) + f'\n],\n"refused": {refused}}}\n'


if __name__ == "__main__":
    FILE.write_text(text_of(make()), encoding="utf-8")
