"""Benchmarks: what they compare computes the same thing, and wrong answers are reported."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from support.command_line import Command
from unpoison.bench import benchmarks, ems, engines, k_rr, plain_em
from unpoison.bench.em import iterate
from unpoison.bench.k_rr import CategoryUsers, agreement, rivals
from unpoison.bench.startup import MOST_SECONDS, program_seconds, server_seconds, startup
from unpoison.engines import LocalEngine, parts_of, summarise_files
from unpoison.errors import InvalidParameter, MissingExtra
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import GroupCounts
from unpoison.mechanisms import RandomizedResponse, make
from unpoison.mechanisms.base import PERTURB_BLOCK
from unpoison.types import FloatArray

USERS, CATEGORIES = 200_000, 8


@pytest.fixture
def users() -> CategoryUsers:
    mechanism = RandomizedResponse(1.0, CATEGORIES)
    return CategoryUsers.draw(USERS, mechanism, np.random.default_rng(1))


def stand_in(items: list[int], mechanism: RandomizedResponse) -> FloatArray:
    """A right answer from somebody else: every report drawn from the stated probabilities."""
    rng = np.random.default_rng(3)
    chances = mechanism.cell_probabilities(np.arange(mechanism.cells, dtype=float), np.empty(0))
    counts = np.zeros(mechanism.cells)
    for users, row in zip(np.bincount(items), chances, strict=True):
        counts += rng.multinomial(users, row)
    return mechanism.decode(counts / len(items))


# k-RR


def test_our_frequencies_agree_with_another_way_to_draw_them(users: CategoryUsers) -> None:
    time, agreed = k_rr.compare(users, "stand-in", stand_in, np.random.default_rng(2), rounds=1)
    assert "stand-in" in time.name
    assert "stand-in" in agreed.name
    assert agreed.met is True
    assert users.frequencies(np.random.default_rng(2)).sum() == pytest.approx(1)


def test_the_known_deviation_is_that_of_many_estimates(users: CategoryUsers) -> None:
    few = CategoryUsers(users.mechanism, users.categories[:2000])
    rng = np.random.default_rng(4)
    errors = np.array([few.frequencies(rng) - few.truth for _ in range(2000)])
    np.testing.assert_allclose(errors.std(axis=0), few.deviations, rtol=0.1)
    assert (np.abs(errors.mean(axis=0)) <= 6 * few.deviations / np.sqrt(len(errors))).all()


@pytest.mark.parametrize("wrong", ["shifted", "not decoded", "biased", "not a number"])
@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_wrong_estimate_is_missed_on_either_side(
    users: CategoryUsers, wrong: str, side: str
) -> None:
    right = users.frequencies(np.random.default_rng(5))
    mechanism = users.mechanism
    faulty = {
        "shifted": np.roll(right, 1),
        "not decoded": right * (mechanism.kept - mechanism.other) + mechanism.other,
        "biased": right + np.eye(CATEGORIES)[3] * 8 * users.deviations,
        "not a number": np.where(np.arange(CATEGORIES) == 3, np.nan, right),
    }[wrong]
    pair = (right, faulty) if side == "theirs" else (faulty, right)
    assert agreement(users, "rival", right, right).met is True
    assert agreement(users, "rival", *pair).met is False


def test_estimates_that_err_in_opposite_directions_are_missed(users: CategoryUsers) -> None:
    away = 5 * users.deviations
    assert agreement(users, "rival", users.truth + away, users.truth + away).met is True
    assert agreement(users, "rival", users.truth + away, users.truth - away).met is False


@pytest.mark.parametrize("name", ["pure-ldp", "multi-freq-ldpy"])
def test_each_library_gives_our_frequencies(name: str, users: CategoryUsers) -> None:
    try:
        rival = rivals()[name]
    except MissingExtra as missing:
        pytest.skip(str(missing))
    few = CategoryUsers(users.mechanism, users.categories[:50_000])
    _, agreed = k_rr.compare(few, name, rival, np.random.default_rng(6), rounds=1)
    assert agreed.met is True


@pytest.mark.parametrize("module", ["pure_ldp", "multi_freq_ldpy"])
def test_a_missing_library_is_named_with_the_way_to_get_it(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'unpoison\[bench\]'"):
        rivals()


def test_without_the_extra_the_command_says_so_before_it_measures_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def missing() -> None:
        raise MissingExtra("the benchmark k-rr", "bench")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(k_rr, "rivals", missing)
    assert next(iter(benchmarks)) == "k-rr"
    line = Command(capsys).refused("bench")
    assert "pip install 'unpoison[bench]'" in line


def test_a_value_that_is_no_category_is_placed_in_whatever_block_it_stands() -> None:
    mechanism = RandomizedResponse(1.0, CATEGORIES)
    for bad in (0.5, -1.0, float(CATEGORIES), np.nan, np.inf):
        values = np.zeros(3 * PERTURB_BLOCK)
        values[[2 * PERTURB_BLOCK + 7, -1]] = bad
        with pytest.raises(InvalidParameter, match=rf"2 outside .* {2 * PERTURB_BLOCK + 7}\)$"):
            mechanism.perturb(values, np.random.default_rng(1))


# EMS


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
@pytest.mark.parametrize(("outputs", "inputs"), [(64, 64), (50, 20), (2, 2)])
def test_ems_by_rows_equals_ours_and_the_dense_one(
    epsilon: float, outputs: int, inputs: int
) -> None:
    buckets = Buckets(make("square-wave", epsilon), outputs, inputs)
    rng = np.random.default_rng(1)
    reports = buckets.mechanism.perturb(rng.beta(2, 5, 20_000), rng)
    counts = np.histogram(reports, buckets.output_edges)[0].astype(np.float64)
    matrix = buckets.transition.dense()
    by_rows = plain_em.ems_by_rows(matrix, counts, 40)
    start, nowhere = np.full(inputs, 1 / inputs), np.zeros(outputs)
    dense = plain_em.expectation_maximisation(
        matrix, counts, start, nowhere, plain_em.smoothed, tolerance=0.0, max_iterations=40
    )
    ours = iterate(GroupCounts(buckets, counts).ems(), 40)
    assert ours.iterations == dense.iterations == 40
    np.testing.assert_allclose(by_rows, dense.honest, atol=1e-12)
    np.testing.assert_allclose(ours.honest, by_rows, atol=1e-12)


def test_the_benchmark_of_ems_shows_equal_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ems, "REPORTS", 10_000)
    _, equal = ems.compare(buckets=32, iterations=5)
    assert equal.met is True


def test_the_benchmark_of_ems_shows_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    right = plain_em.ems_by_rows
    monkeypatch.setattr(ems, "REPORTS", 10_000)
    monkeypatch.setattr(plain_em, "ems_by_rows", lambda *problem: right(*problem) + 1e-8)
    _, equal = ems.compare(buckets=32, iterations=5)
    assert equal.met is False


# Engines


@pytest.mark.slow
def test_the_decoder_alone_reads_every_row_and_arrays_count_every_part(tmp_path: Path) -> None:
    path = engines.write_reports(tmp_path / "reports.parquet", 3000)
    assert engines.decode(path, workers=2) == 3000
    parts = len(parts_of(path))
    assert engines.count_by_numpy(path, LocalEngine(workers=2)) == parts
    assert 50 < engines.peak_memory(path) < engines.MOST_MEMORY


def test_awkward_reports_are_all_valid_and_hit_most_cells(tmp_path: Path) -> None:
    path = engines.write_awkward(tmp_path / "awkward.parquet")
    summary = summarise_files([path], engines.PLAN)
    assert summary.invalid == 0
    assert np.count_nonzero(summary.counts) > 0.9 * summary.counts.size


@pytest.mark.parametrize("rival", ["duckdb", "polars"])
def test_rivals_count_what_we_count(rival: str, tmp_path: Path) -> None:
    module = pytest.importorskip(rival)
    path = engines.write_reports(tmp_path / "reports.parquet", 20_000)
    rows = getattr(engines, f"by_{rival}")(module, path)
    group, cell, number = (np.asarray(rows[name]) for name in ("group", "cell", "number"))
    counts = np.zeros((len(engines.PLAN.groups), engines.PLAN.cells), dtype=np.int64)
    counts[group, cell] = number
    ours = summarise_files([path], engines.PLAN)
    assert np.array_equal(counts, ours.counts)
    totals = np.bincount(group, weights=np.asarray(rows["total"]))
    assert totals == pytest.approx([ours.sum(group_number) for group_number in range(len(totals))])


# startup


def test_processor_time_grows_with_the_work_of_a_program() -> None:
    environment = dict(os.environ)
    bare = program_seconds(["-c", "pass"], environment)
    # A hundred million steps take several times as long as an interpreter takes to start.
    assert program_seconds(["-c", "sum(range(10**8))"], environment) > 2 * bare


def test_a_program_or_server_that_fails_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="must end with code 0; received 3"):
        program_seconds(["-c", "raise SystemExit(3)"], dict(os.environ))
    wrong = {**os.environ, "UNPOISON_COLLECTOR_PORT": "none", "UNPOISON_COLLECTOR_HOST": "nowhere"}
    with pytest.raises(InvalidParameter, match="must print its address"):
        server_seconds(tmp_path, wrong)


@pytest.mark.slow
@pytest.mark.server
def test_every_start_is_measured_beside_a_bare_interpreter() -> None:
    results = startup(rounds=1)
    assert len(results) == len(MOST_SECONDS) + 1
    for result, name in zip(results, MOST_SECONDS, strict=False):
        assert result.name.startswith(name)
        assert result.ratio is not None
        assert result.ratio > 1
    assert "imports of its libraries" in results[-1].name
