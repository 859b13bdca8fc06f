"""The benchmark of the joint filter's constants, and its tables in docs/method.md."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from unpoison import Plan, simulate
from unpoison.bench import benchmarks, default_benchmarks, joint_constants
from unpoison.bench.joint_constants import (
    Constant,
    Effect,
    OriginCount,
    Present,
    joint_filter_constants,
    replaced,
)
from unpoison.bench.joint_grid import Measured, recorded_reads
from unpoison.errors import InvalidParameter
from unpoison.filters.joint import constants
from unpoison.filters.joint.constants import Origin
from unpoison.output.markdown import markdown_table
from unpoison.simulation.population import Population

METHOD = Path(__file__).parents[2] / "docs" / "method.md"
CONSTANTS = {constant.name: constant for constant in joint_filter_constants()}


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    """One collection without attackers and one with."""
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    users = Population.of(np.random.default_rng(1).beta(2, 5, 20_000))
    return [
        Measured.of(simulate(plan, users, attack, 0.2, np.random.default_rng(3)))
        for attack in ("none", "point:C")
    ]


def printed_table(heads: tuple[str, ...]) -> list[list[str]]:
    """The lines under these heads in docs/method.md, cell by cell."""
    page = METHOD.read_text(encoding="utf-8")
    above = "\n".join(markdown_table([heads]).split("\n")[:2])
    below = page.split(above)[1].split("\n\n")[0].strip()
    return [line.strip("| ").split(" | ") for line in below.split("\n")]


@pytest.mark.parametrize(
    ("name", "half", "twice"),
    [
        ("INTERVAL_LEVEL", 0.025, 0.1),
        ("MOST_BUCKETS", 32, 128),
        ("MOST_SUPPORT_ROUNDS", 5, 20),
        ("STEP_TO_BOUND", 0.4975, 0.9975),
        ("WIDENINGS", (1, 1, 2), (2, 4, 8)),
    ],
)
def test_a_constant_is_halved_and_doubled_as_far_as_that_has_a_meaning(
    name: str, half: float, twice: float
) -> None:
    assert CONSTANTS[name].scaled(0.5) == pytest.approx(half)
    assert CONSTANTS[name].scaled(2.0) == pytest.approx(twice)
    whole = np.array(CONSTANTS[name].value).dtype == np.int64
    assert (np.array(CONSTANTS[name].scaled(2.0)).dtype == np.int64) == whole


def test_whole_numbers_stay_above_zero() -> None:
    assert Constant("ONE", 1, Origin.WORK, math.inf, "").scaled(0.5) == 1


def test_every_constant_has_an_origin_and_a_meaning() -> None:
    upper = {name for name in vars(constants) if name.isupper()}
    assert set(CONSTANTS) == upper
    assert all(constant.meaning for constant in CONSTANTS.values())


def test_a_constant_is_back_at_its_value_after_a_failure() -> None:
    with pytest.raises(InvalidParameter), replaced("MOST_BUCKETS", 7):
        raise InvalidParameter("number", "must be 7", constants.MOST_BUCKETS)
    with replaced("MOST_BUCKETS", 7):
        assert constants.MOST_BUCKETS == 7
    assert constants.MOST_BUCKETS == 64


def test_reads_are_recorded_only_meanwhile() -> None:
    with recorded_reads() as names:
        assert constants.MOST_STEPS > 0
    assert constants.MOST_BUCKETS > 0
    assert "MOST_STEPS" in names
    assert "MOST_BUCKETS" not in names


@pytest.mark.slow
def test_another_value_reaches_the_filter(measured: list[Measured]) -> None:
    effect = joint_constants._effect(CONSTANTS["INTERVAL_LEVEL"], 2.0, measured)
    assert effect.tried == 0.1
    # 1.645 / 1.960 standard errors: the interval of one model is as much narrower.
    assert effect.outcome.width / effect.present.width == pytest.approx(0.84, abs=0.05)
    assert effect.outcome.median_error == effect.present.median_error


@pytest.mark.slow
def test_an_estimate_that_does_not_read_a_constant_is_kept(measured: list[Measured]) -> None:
    """Unnoticed noise is sought only where nobody seems to attack."""
    honest, attacked = measured
    assert "NOISE_HALVINGS" in honest.constants_read
    assert "NOISE_HALVINGS" not in attacked.constants_read
    with replaced("NOISE_HALVINGS", 14):
        again = Measured.of(attacked.run)
    assert again.estimate == attacked.estimate


def test_the_benchmark_runs_only_by_its_name() -> None:
    assert "joint-constants" in list(benchmarks)
    assert "joint-constants" not in default_benchmarks()
    assert set(default_benchmarks()) == set(benchmarks) - {"joint-constants"}


def test_the_page_counts_the_constants_by_origin() -> None:
    rows = {origin: int(number) for origin, number in printed_table(OriginCount.HEADS)}
    origins = [constant.origin.value for constant in CONSTANTS.values()]
    expected = {origin: origins.count(origin) for origin in origins}
    assert rows == {**expected, "all": len(CONSTANTS)}


def test_the_page_lists_every_constant_with_its_value() -> None:
    assert printed_table(Constant.HEADS) == [constant.cells() for constant in CONSTANTS.values()]


def test_the_page_has_the_effect_of_half_and_of_twice_every_constant() -> None:
    first, *rows = printed_table(Effect.HEADS)
    assert first[:2] == ["none", "present values"]
    tried = [
        [f"`{constant.name}`", joint_constants._text(constant.scaled(factor))]
        for constant in CONSTANTS.values()
        for factor in (0.5, 2.0)
    ]
    assert [row[:2] for row in rows] == tried
    assert all(len(row) == len(Present.HEADS) for row in rows)
