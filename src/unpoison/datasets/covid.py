"""COVID-19: the age groups of females who died of it in California."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unpoison.datasets.base import Dataset, Sample, data_file, datasets
from unpoison.datasets.publishers import count_table, covid_deaths
from unpoison.errors import InvalidFile

FILE = "covid_deaths_ca_female_by_age.csv"
PUBLISHED = "Provisional_COVID-19_Death*_by_Sex*Age*.csv"
NAME, COUNT = "age_group", "deaths"
"""The columns of FILE: an age group, and its number of deaths."""
DEATHS_BY_AGE = {
    "0-17 years": 52,
    "1-4 years": 13,
    "5-14 years": 13,
    "15-24 years": 106,
    "18-29 years": 255,
    "25-34 years": 476,
    "30-39 years": 708,
    "35-44 years": 1073,
    "40-49 years": 1665,
    "45-54 years": 2403,
    "50-64 years": 6924,
    "55-64 years": 5512,
    "65-74 years": 8436,
    "75-84 years": 10307,
    "85 years and over": 13735,
}
"""Counts of 2022-11-23 (CDC/NCHS, table 9bhg-hcku); the groups overlap, as they are published."""


@datasets.register("covid-19")
class Covid19(Dataset):
    """Age groups of deaths: the table's own records, or resampled from them.

    >>> sample = Covid19().draw(51_678, np.random.default_rng(1))
    >>> len(sample.categories), int((sample.values == "85 years and over").sum())
    (15, 13735)
    """

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Draw each record once, in random order, where that many are asked for; else resample."""
        path = data_file(FILE, PUBLISHED)
        table = DEATHS_BY_AGE if path is None else _read(path)
        names, counts = np.array(list(table)), np.array(list(table.values()))
        if users == counts.sum():
            values, records = rng.permutation(np.repeat(names, counts)), f"its own {users} records"
        else:
            values = rng.choice(names, users, p=counts / counts.sum())
            records = f"{users} resampled"
        where = "the built-in table of 2022-11-23" if path is None else path.name
        source = f"COVID-19 deaths of females in California, {records} from {where}"
        return Sample(values, math.nan, math.nan, source, tuple(table))


def _read(path: Path) -> Mapping[str, int]:
    """The table in a file, the publisher's or one with a row for each group."""
    if path.name != FILE:
        return covid_deaths(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [(row[NAME], int(row[COUNT])) for row in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        raise InvalidFile(path, f"must have the columns {NAME} and {COUNT}") from None
    return count_table(path, rows)
