"""Datasets: publishers' files, built-in frequency tables, and what is drawn from them."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unpoison import Plan, perturb
from unpoison.datasets import (
    Sample,
    covid_deaths,
    data_file,
    datasets,
    pickup_seconds,
    total_compensation,
)
from unpoison.errors import InvalidFile, UnpoisonError

COVID_FILE = "covid_deaths_ca_female_by_age.csv"
COVID_RECORDS = 51_678
TAXI_FILE = "taxi_pickup_seconds.npy"
PAY_FILES = ("sf_total_pay_benefits_transparentca.npy", "sf_total_compensation_datasf.npy")
TLC_NAME = "yellow_tripdata_2018-01"
DATASF_NAME = "Employee_Compensation.csv"
CDC_NAME = "Provisional_COVID-19_Deaths_by_Sex_and_Age.csv"
CDC_HEADER = "Data As Of,Group,Year,State,Sex,Age Group,COVID-19 Deaths,Total Deaths"
CDC_ROWS = """
11/23/2022,By Total,,United States,Female,45-54 years,27000,9
11/23/2022,By Total,,California,All Sexes,45-54 years,6000,9
11/23/2022,By Total,,California,Male,45-54 years,4000,9
11/23/2022,By Total,,California,Female,All Ages,42082,9
11/23/2022,By Total,,California,Female,Under 1 year,,9
11/23/2022,By Total,,California,Female,1-4 years,3,9
11/23/2022,By Year,2020,California,Female,1-4 years,2,9
11/23/2022,By Total,,California,Female,50-64 years,5,9
11/23/2022,By Total,,California,Female,"85 years and over","1,002",9
11/23/2022,By Month,2020,California,Female,50-64 years,several,9
"""
CDC_TABLE = {"1-4 years": 3, "50-64 years": 5, "85 years and over": 1002}


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
without_data_files = pytest.mark.usefixtures("no_data_files")


@pytest.fixture(params=[None, "none", "empty"])
def no_data_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Nowhere to look for data files, a folder that is not there, or an empty one."""
    (folder / "empty").mkdir()
    if request.param is not None:
        monkeypatch.setenv("UNPOISON_DATA", request.param)


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
    (data / f"{TLC_NAME}.csv").write_text("not read: the small file comes first")
    times = np.array([60, 3600, 86_399], dtype=np.int32)
    np.save(data / TAXI_FILE, times)
    sample = draw("taxi", 300)
    assert set(sample.values.tolist()) == set(times.tolist())
    assert TAXI_FILE in sample.source
    assert (sample.low, sample.high) == (0.0, 86_400.0)


@without_data_files
def test_taxi_falls_back_to_its_table_and_says_so() -> None:
    sample = draw("taxi", 200_000)
    assert "built-in" in sample.source
    share = np.bincount((sample.values // 3600).astype(int), minlength=24) / 200_000
    assert len(share) == 24
    assert share.argmin() == 4
    assert share.argmax() == 18


@pytest.mark.parametrize("times", [[-1, 5], [5, 86_400]])
def test_taxi_refuses_times_of_no_day(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: list[int]
) -> None:
    np.save(data_folder(folder, monkeypatch, "environment") / TAXI_FILE, times)
    with pytest.raises(InvalidFile, match="must hold seconds of the day"):
        draw("taxi", 7)


# Retirement


@every_place
@pytest.mark.parametrize("name", PAY_FILES)
def test_retirement_resamples_what_a_file_has_in_the_interval(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, name: str
) -> None:
    data = data_folder(folder, monkeypatch, where)
    np.save(data / name, [-5.0, 9_999.99, 10_000.0, 60_001.5, 600_000.0, 600_000.01])
    (data / DATASF_NAME).write_text("not read: the small file comes first")
    sample = draw("retirement", 300)
    assert set(sample.values.tolist()) == {10_000.0, 60_001.5, 600_000.0}
    assert f"300 drawn from {name}" in sample.source
    assert (sample.low, sample.high) == (10_000.0, 600_000.0)


def test_retirement_prefers_the_longer_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_folder(folder, monkeypatch, "environment")
    for name in PAY_FILES:
        np.save(data / name, [20_000.0])
    assert PAY_FILES[0] in draw("retirement", 5).source


@without_data_files
def test_retirement_falls_back_to_its_table_and_says_so() -> None:
    sample = draw("retirement", 200_000)
    assert "built-in" in sample.source
    assert (sample.low, sample.high) == (10_000.0, 600_000.0)
    normalised = 2 * (sample.values.mean() - 10_000) / 590_000 - 1
    assert abs(normalised - -0.6495) < 0.003
    share = np.bincount(((sample.values - 10_000) // 20_000).astype(int)) / 200_000
    assert share.argmax() == 4
    assert abs(share[0] - 10_111 / 99_444) < 0.004
    assert sample.values.max() < 430_000


def test_retirement_refuses_a_file_with_nothing_in_the_interval(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(data_folder(folder, monkeypatch, "environment") / PAY_FILES[0], [1.0, 2.0])
    with pytest.raises(InvalidFile, match=r"holds nothing in \[10000, 600000\]"):
        draw("retirement", 7)


@pytest.mark.parametrize(("dataset", "name"), [("taxi", TAXI_FILE), ("retirement", PAY_FILES[0])])
@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 no archive", b"text", [], [[1.0]], ["a"], [1.0, math.nan]]
)
def test_a_file_of_no_numbers_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, name: str, content: object
) -> None:
    path = data_folder(folder, monkeypatch, "environment") / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, np.array(content))
    with pytest.raises(InvalidFile, match=f"{name}: must be a NumPy file with one column"):
        draw(dataset, 7)


# COVID-19


@without_data_files
def test_covid_has_its_table_built_in_and_says_so() -> None:
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


# The publishers' files


def write_trips(path: Path, kind: str = "us", column: str = "tpep_pickup_datetime") -> Path:
    """Three trips at 00:21:05, 12:00:00 and 23:59:59."""
    times = ["2018-01-01T00:21:05", "2018-01-01T12:00:00", "2018-01-31T23:59:59"]
    starts = pa.array(np.array(times, dtype="datetime64[us]")).cast(pa.timestamp(kind))
    pq.write_table(pa.table({"VendorID": [1, 2, 1], column: starts}), path)
    return path


@pytest.mark.parametrize("kind", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("column", ["tpep_pickup_datetime", "pickup_datetime"])
def test_pickup_seconds_of_parquet(folder: Path, kind: str, column: str) -> None:
    path = write_trips(folder / "trips.parquet", kind, column)
    assert pickup_seconds(path).tolist() == [1265, 43_200, 86_399]


@pytest.mark.parametrize("column", ["tpep_pickup_datetime", "pickup_datetime", " pickup_datetime"])
@pytest.mark.parametrize(
    "times",
    [
        ["2018-01-01 00:21:05", "2018-01-01 12:00:00", "2018-01-31 23:59:59"],
        ["2018-01-01T00:21:05.000", " 2018-01-01T12:00 ", "2018-01-31T23:59:59.9"],
        ["01/01/2018 12:21:05 AM", "1/1/2018 12:00 pm", "01/31/2018 11:59:59 PM"],
    ],
)
def test_pickup_seconds_of_csv(folder: Path, column: str, times: list[str]) -> None:
    path = folder / "trips.csv"
    path.write_text("\n".join([f"VendorID,{column},fare", *(f"1,{time},9.5" for time in times)]))
    assert pickup_seconds(path).tolist() == [1265, 43_200, 86_399]


@pytest.mark.parametrize(
    "cell", ["", "soon", "2018-01-01", "2018-01-01 24:00:00", "2018-01-01 13:00:00 PM"]
)
def test_a_trip_without_a_time_is_refused(folder: Path, cell: str) -> None:
    path = folder / "trips.csv"
    path.write_text(f"a,pickup_datetime\n1,2018-01-01 00:00:00\n1,{cell}\n")
    with pytest.raises(InvalidFile, match=r"trips.csv: row 2: must have a date and time in column"):
        pickup_seconds(path)


def test_a_trip_without_a_time_in_parquet_is_refused(folder: Path) -> None:
    path = folder / "trips.parquet"
    times = pa.array([0, None], pa.timestamp("us"))
    pq.write_table(pa.table({"tpep_pickup_datetime": times}), path)
    with pytest.raises(InvalidFile, match="row 2: must have a date and time"):
        pickup_seconds(path)


def test_rows_are_counted_over_all_batches(folder: Path) -> None:
    path = folder / "trips.csv"
    lines = ["a,pickup_datetime", *["1,2018-01-01 00:00:07"] * 100_000, "1,late"]
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidFile, match="row 100001: "):
        pickup_seconds(path)
    path.write_text("\n".join(lines[:-1]))
    assert pickup_seconds(path).tolist() == [7] * 100_000


@pytest.mark.parametrize("column", ["Total Compensation", "total_compensation"])
def test_total_compensation_of_csv(folder: Path, column: str) -> None:
    path = folder / "pay.csv"
    rows = ["2013,82146.04", '2014,"1,082,146.5"', "2015,-2933.13", '2016,"$12,000"', "2017, 0 "]
    path.write_text("\n".join([f"Year,{column}", *rows]), encoding="utf-8-sig")
    assert total_compensation(path).tolist() == [82_146.04, 1_082_146.5, -2933.13, 12_000.0, 0.0]


def test_compensation_without_its_column_is_refused(folder: Path) -> None:
    path = folder / "pay.csv"
    path.write_text("Year,Total Salary\n2013,5\n")
    with pytest.raises(InvalidFile, match="has no column 'Total Compensation'"):
        total_compensation(path)


@pytest.mark.parametrize("cell", ["", "much", "nan", "inf", "1.2.3"])
def test_compensation_that_is_no_number_is_refused(folder: Path, cell: str) -> None:
    path = folder / "pay.csv"
    path.write_text(f"Year,Total Compensation\n2013,5\n2013,{cell}\n")
    with pytest.raises(InvalidFile, match=r"row 2: must have a number in column"):
        total_compensation(path)


@pytest.mark.parametrize(
    "header", [CDC_HEADER, CDC_HEADER.lower(), CDC_HEADER.replace(" ", "_").replace("-", "_")]
)
def test_covid_deaths_of_csv(folder: Path, header: str) -> None:
    path = folder / "deaths.csv"
    path.write_text(header + CDC_ROWS)
    assert covid_deaths(path) == CDC_TABLE
    assert list(covid_deaths(path)) == list(CDC_TABLE)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("By Total,,California,Female,5-14 years,many,9", "row 11: must have a whole number"),
        ("By Total,,California,Female,5-14 years,-3,9", "row 11: must have a whole number"),
        ("By Total,,California,Female,50-64 years,6,9", "must have one row a group"),
        ("By Total,,California,Female,,6,9", "must have at least 2 named groups"),
    ],
)
def test_deaths_that_are_no_table_are_refused(folder: Path, row: str, fault: str) -> None:
    path = folder / "deaths.csv"
    path.write_text(f"{CDC_HEADER}{CDC_ROWS}11/23/2022,{row}\n")
    with pytest.raises(InvalidFile, match=fault):
        covid_deaths(path)


@pytest.mark.parametrize("column", ["Group", "State", "Sex", "Age Group", "COVID-19 Deaths"])
def test_deaths_without_a_column_are_refused(folder: Path, column: str) -> None:
    path = folder / "deaths.csv"
    path.write_text(CDC_HEADER.replace(f",{column},", ",Other,") + CDC_ROWS)
    with pytest.raises(InvalidFile, match=f"has no column '{column}'"):
        covid_deaths(path)


def test_trips_without_a_column_are_refused(folder: Path) -> None:
    path = write_trips(folder / "trips.parquet", column="tpep_dropoff_datetime")
    with pytest.raises(InvalidFile, match="has no column 'tpep_pickup_datetime'"):
        pickup_seconds(path)


@pytest.mark.parametrize("load", [pickup_seconds, total_compensation, covid_deaths])
@pytest.mark.parametrize("name", ["lost.csv", "empty.csv", "bytes.csv", "bytes.parquet", "x.txt"])
def test_a_broken_file_is_refused_in_one_line(folder: Path, load: object, name: str) -> None:
    path = folder / name
    if name != "lost.csv":
        path.write_bytes(b"" if name == "empty.csv" else b"\xff\xfe\x00\x01")
    with pytest.raises(InvalidFile) as caught:
        load(path)  # type: ignore[operator]
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("load", "header"),
    [(pickup_seconds, "tpep_pickup_datetime,a"), (total_compensation, "Total Compensation,a")],
)
def test_a_file_without_rows_is_refused(folder: Path, load: object, header: str) -> None:
    path = folder / "none.csv"
    path.write_text(f"{header}\n")
    with pytest.raises(InvalidFile, match="holds no rows"):
        load(path)  # type: ignore[operator]


@every_place
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_taxi_draws_from_the_publishers_first_month(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, suffix: str
) -> None:
    data = data_folder(folder, monkeypatch, where)
    if suffix == ".parquet":
        write_trips(data / f"{TLC_NAME}.parquet")
        write_trips(data / "yellow_tripdata_2018-02.parquet", column="not_read")
    else:
        times = "2018-01-01 00:21:05\n2,2018-01-01 12:00:00\n2,2018-01-01 23:59:59\n"
        (data / f"{TLC_NAME}.csv").write_text(f"VendorID,tpep_pickup_datetime\n1,{times}")
    sample = draw("taxi", 300)
    assert set(sample.values.tolist()) == {1265.0, 43_200.0, 86_399.0}
    assert sample.values.dtype == np.float64
    assert f"300 drawn from {TLC_NAME}{suffix}" in sample.source


@every_place
def test_retirement_draws_from_the_publishers_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    data = data_folder(folder, monkeypatch, where)
    rows = 'Year,Total Compensation\n2013,"82,146.04"\n2013,99.5\n2013,-3\n'
    (data / DATASF_NAME).write_text(rows)
    sample = draw("retirement", 30)
    assert set(sample.values.tolist()) == {82_146.04}
    assert f"30 drawn from {DATASF_NAME}" in sample.source


@every_place
@pytest.mark.parametrize("name", [CDC_NAME, CDC_NAME.replace(".csv", "_20241116.csv")])
def test_covid_draws_from_the_publishers_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, name: str
) -> None:
    data = data_folder(folder, monkeypatch, where)
    (data / name).write_text(CDC_HEADER + CDC_ROWS)
    sample = draw("covid-19", 1010)
    assert sample.categories == tuple(CDC_TABLE)
    assert Counter(sample.values.tolist()) == CDC_TABLE
    assert f"its own 1010 records from {name}" in sample.source


def test_the_folder_that_is_named_comes_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = data_folder(folder, monkeypatch, "shared")
    np.save(shared / TAXI_FILE, [1])
    own = folder / "own"
    own.mkdir()
    monkeypatch.setenv("UNPOISON_DATA", str(own))
    assert TAXI_FILE in draw("taxi", 5).source
    write_trips(own / f"{TLC_NAME}.parquet")
    assert TLC_NAME in draw("taxi", 5).source
    np.save(own / TAXI_FILE, [2])
    assert draw("taxi", 5).values.tolist() == [2.0] * 5


def test_other_folders_can_be_looked_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "there").mkdir()
    (folder / "there/a_folder.csv").mkdir()
    (folder / "there/b.csv").touch()
    monkeypatch.setattr("unpoison.datasets.base.DATA_FOLDERS", ("nowhere", str(folder / "there")))
    assert data_file("*.npy", "*.csv") == folder / "there/b.csv"
    assert data_file("*.npy") is None
