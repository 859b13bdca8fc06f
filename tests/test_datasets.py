"""The data that simulations draw from."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from unpoison import Plan, perturb
from unpoison.datasets import Sample, datasets
from unpoison.errors import InvalidFile, UnpoisonError

COVID_FILE = "covid_deaths_ca_female_by_age.csv"
COVID_RECORDS = 51_678


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNPOISON_DATA", raising=False)
    return tmp_path


def draw(name: str, users: int, seed: int = 1) -> Sample:
    return datasets[name]().draw(users, np.random.default_rng(seed))


def data_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> Path:
    """A folder for data files that `where` leads to."""
    data = folder / "shared/data"
    data.mkdir(parents=True)
    if where == "environment":
        monkeypatch.setenv("UNPOISON_DATA", str(data))
    else:
        (folder / "work").mkdir()
        monkeypatch.chdir(folder / "work")
    return data


every_dataset = pytest.mark.parametrize("name", list(datasets))
every_place = pytest.mark.parametrize("where", ["environment", "shared"])
every_lack = pytest.mark.parametrize("where", [None, "none", "empty"])


# The contract of every dataset


@every_dataset
@pytest.mark.parametrize("users", [1, 2, 5000])
def test_a_dataset_draws_as_many_as_asked_in_its_range(name: str, users: int) -> None:
    sample = draw(name, users)
    assert sample.values.shape == (users,)
    assert str(users) in sample.source
    if sample.categories is None:
        assert sample.values.dtype == np.float64
        assert sample.low <= sample.values.min() <= sample.values.max() <= sample.high
    else:
        assert sample.values.dtype.kind == "U"
        assert set(sample.values.tolist()) <= set(sample.categories)
        assert math.isnan(sample.low)
        assert math.isnan(sample.high)


@every_dataset
@pytest.mark.parametrize("users", [5000, COVID_RECORDS])
def test_a_seed_decides_who_is_drawn(name: str, users: int) -> None:
    np.testing.assert_array_equal(draw(name, users, 1).values, draw(name, users, 1).values)
    assert not np.array_equal(draw(name, users, 1).values, draw(name, users, 2).values)


@every_dataset
def test_a_plan_for_a_sample_takes_its_values(name: str) -> None:
    sample = draw(name, 100)
    if sample.categories is None:
        plan = Plan.new(epsilon=1.0, low=sample.low, high=sample.high)
    else:
        plan = Plan.new("k-rr", epsilon=1.0, categories=sample.categories)
    assert set(perturb(sample.values, plan).user.tolist()) == set(range(100))


def test_a_sample_of_categories_has_no_range_for_a_plan_of_numbers() -> None:
    sample = draw("covid-19", 100)
    with pytest.raises(UnpoisonError, match="must be a finite number"):
        Plan.new(epsilon=1.0, low=sample.low, high=sample.high)


# Taxi


@every_place
def test_taxi_resamples_a_file_that_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    data = data_folder(folder, monkeypatch, where)
    times = np.array([60, 3600, 86_399], dtype=np.int32)
    np.save(data / "taxi_pickup_seconds.npy", times)
    sample = draw("taxi", 300)
    assert set(sample.values.tolist()) == set(times.tolist())
    assert "taxi_pickup_seconds.npy" in sample.source
    assert (sample.low, sample.high) == (0.0, 86_400.0)


@every_lack
def test_taxi_falls_back_to_its_table_and_says_so(
    monkeypatch: pytest.MonkeyPatch, where: str | None
) -> None:
    Path("empty").mkdir()
    if where is not None:
        monkeypatch.setenv("UNPOISON_DATA", where)
    sample = draw("taxi", 200_000)
    assert "built-in" in sample.source
    share = np.bincount((sample.values // 3600).astype(int), minlength=24) / 200_000
    assert len(share) == 24
    assert share.argmin() == 4
    assert share.argmax() == 18


# COVID-19


@every_lack
def test_covid_has_its_table_built_in_and_says_so(
    monkeypatch: pytest.MonkeyPatch, where: str | None
) -> None:
    Path("empty").mkdir()
    if where is not None:
        monkeypatch.setenv("UNPOISON_DATA", where)
    sample = draw("covid-19", COVID_RECORDS)
    assert sample.categories is not None
    counts = Counter(sample.values.tolist())
    assert len(sample.categories) == len(counts) == 15
    assert sample.categories[9:12] == ("45-54 years", "50-64 years", "55-64 years")
    assert [counts[name] for name in sample.categories[9:12]] == [2403, 6924, 5512]
    assert min(counts.values()) == counts["1-4 years"] == counts["5-14 years"] == 13
    assert max(counts.values()) == counts["85 years and over"] == 13_735
    assert "its own 51678 records from the built-in table" in sample.source


def test_covid_at_its_own_size_is_each_record_once_in_random_order() -> None:
    one, other = draw("covid-19", COVID_RECORDS, 1), draw("covid-19", COVID_RECORDS, 2)
    assert Counter(one.values.tolist()) == Counter(other.values.tolist())
    half = COVID_RECORDS // 2
    oldest = one.values == "85 years and over"
    assert abs(oldest[:half].mean() - oldest[half:].mean()) < 5 * math.sqrt(1 / half)


@pytest.mark.parametrize("users", [COVID_RECORDS - 1, COVID_RECORDS + 1, 200_000])
def test_covid_at_any_other_size_is_resampled(users: int) -> None:
    sample = draw("covid-19", users)
    assert f"{users} resampled from the built-in table" in sample.source
    share = (sample.values == "85 years and over").mean()
    expected = 13_735 / COVID_RECORDS
    assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / users)
    assert share * users != 13_735


@every_place
def test_covid_takes_a_file_that_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    data = data_folder(folder, monkeypatch, where)
    (data / COVID_FILE).write_text("age_group,deaths\nyoung,2\n\nold,5\nnobody,0\n")
    sample = draw("covid-19", 7)
    assert sample.categories == ("young", "old", "nobody")
    assert Counter(sample.values.tolist()) == {"young": 2, "old": 5}
    assert f"its own 7 records from {COVID_FILE}" in sample.source
    assert f"9 resampled from {COVID_FILE}" in draw("covid-19", 9).source


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "must have at least 2 named groups"),
        ("age,deaths\nyoung,2\nold,5\n", "must have the columns age_group and deaths"),
        ("age_group,deaths\nyoung,2\nold\n", "must have the columns age_group and deaths"),
        ("age_group,deaths\nyoung,2\nold,many\n", "must have the columns age_group and deaths"),
        ("age_group,deaths\n", "must have at least 2 named groups"),
        ("age_group,deaths\nold,5\n", "must have at least 2 named groups"),
        ("age_group,deaths\nyoung,-2\nold,5\n", "must have at least 2 named groups"),
        ("age_group,deaths\nyoung,0\nold,0\n", "must have at least 2 named groups"),
        ("age_group,deaths\n,2\nold,5\n", "must have at least 2 named groups"),
        ("age_group,deaths\nyoung,2\nold,5\nold,6\n", "must have one row a group"),
    ],
)
def test_covid_refuses_a_file_that_is_no_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, fault: str
) -> None:
    data = data_folder(folder, monkeypatch, "environment")
    (data / COVID_FILE).write_text(text)
    with pytest.raises(InvalidFile, match=f"{COVID_FILE}: {fault}"):
        draw("covid-19", 7)
