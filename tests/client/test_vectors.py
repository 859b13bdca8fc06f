"""The test vectors that the browser's client shares: the Python mechanisms give them exactly."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from client.vectors.make import (
    FILE,
    FRACTION,
    WORDS,
    fixed_offset,
    make,
    plan_of,
    text_of,
    window_of,
)
from unpoison.errors import InvalidParameter
from unpoison.mechanisms.randomness import SystemGenerator, Words

VECTORS = json.loads(FILE.read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = VECTORS["mechanisms"]
DRAWS = [(case, draw) for case in CASES for draw in case["draws"]]


class Tape(SystemGenerator):
    """Gives the words of a vector, one after the other, in place of the system's."""

    def __init__(self, texts: list[str]) -> None:
        self.words_left = [int(text, 16) for text in texts]
        self.used = 0

    def words(self, size: int) -> Words:
        taken, self.words_left = self.words_left[:size], self.words_left[size:]
        self.used += size
        return np.array(taken, dtype=np.uint64)


def input_of(case: dict[str, Any], value: float | str) -> float:
    plan = plan_of(case)
    if plan.categories is not None:
        return float(plan.categories.index(str(value)))
    return float(plan.inputs_of(np.array([float(value)]))[0])


@pytest.mark.slow
def test_the_file_is_what_the_script_writes() -> None:
    assert FILE.read_text(encoding="utf-8") == text_of(make())


@pytest.mark.parametrize(
    "case", CASES, ids=lambda c: f"{c['mechanism']}-{c['epsilon']}-{c['cells']}"
)
def test_python_gives_the_weights_and_windows(case: dict[str, Any]) -> None:
    window = window_of(plan_of(case))
    assert window.inside_weight == int(case["inside_weight"])
    assert window.window == case["window"]
    assert window.total == int(case["total"])


@pytest.mark.slow
def test_python_draws_the_cells_from_the_words() -> None:
    for case, draw in DRAWS:
        plan = plan_of(case)
        fixed = fixed_offset(plan, draw["value"])
        tape = Tape(draw["words"])
        offsets = np.array([fixed], dtype=np.int64)
        cells = window_of(plan).cells_from_words(offsets, tape.words(2), tape.words)
        assert (fixed, cells.tolist()) == (int(draw["fixed"]), [draw["cell"]])
        assert tape.used == draw["used"]


@pytest.mark.slow
def test_python_perturbs_to_the_same_cells() -> None:
    for case, draw in DRAWS:
        mechanism = plan_of(case).group_mechanisms[0]
        inputs = np.array([input_of(case, draw["value"])])
        assert mechanism.perturb(inputs, Tape(draw["words"])).tolist() == [draw["cell"]]


@pytest.mark.parametrize("case", VECTORS["refused"])
def test_python_refuses_what_the_vectors_refuse(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="under 2\\^53"):
        plan_of(case)


def test_the_vectors_reach_the_corners() -> None:
    """Refused words, the ends of the accepted ones, clamped values, and halves of both parities."""
    limits = {id(draw): WORDS - WORDS % int(case["total"]) for case, draw in DRAWS}
    words = [(int(draw["words"][draw["used"] - 1], 16), limits[id(draw)]) for _, draw in DRAWS]
    assert {draw["used"] for _, draw in DRAWS} == {2, 3, 4}
    assert any(word == limit - 1 for word, limit in words)
    assert any(int(draw["words"][1], 16) == limits[id(draw)] for _, draw in DRAWS)
    numbers = [(case, draw) for case, draw in DRAWS if "low" in case]
    assert any(draw["value"] < case["low"] for case, draw in numbers)
    assert any(draw["value"] > case["high"] for case, draw in numbers)
    assert {_half(case, draw) for case, draw in numbers} == {None, "up", "down"}
    assert {draw["cell"] for _, draw in DRAWS} >= {0, 1, 4095}
    assert any(_between_steps(case, draw) for case, draw in numbers)


def _between_steps(case: dict[str, Any], draw: dict[str, Any]) -> bool:
    """Whether a value lies between two that users can have."""
    return "step" in case and (draw["value"] - case["low"]) % case["step"] == case["step"] / 2


def _half(case: dict[str, Any], draw: dict[str, Any]) -> str | None:
    """Which way a value went that lies halfway between two fixed offsets."""
    if (case["low"], case["high"]) != (0.0, 1.0) or "step" in case:
        return None
    exact = Fraction(draw["value"]) * (case["cells"] - case["window"]) * FRACTION
    if exact % 1 != Fraction(1, 2):
        return None
    return "up" if int(draw["fixed"]) > exact else "down"
