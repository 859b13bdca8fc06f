"""Taxi: the time of day at which New York's yellow taxis pick people up, in seconds.

The paper's range, of 86,340 seconds, suggests whole minutes. Seconds are kept: whole minutes would
move the normalised mean by 0.0001.
"""

from __future__ import annotations

import numpy as np

from unpoison.datasets.base import Dataset, Sample, data_file, datasets, saved_numbers
from unpoison.datasets.publishers import pickup_seconds
from unpoison.errors import InvalidFile

FILE = "taxi_pickup_seconds.npy"
PUBLISHED = ("yellow_tripdata*.parquet", "yellow_tripdata*.csv", "*Yellow_Taxi_Trip_Data*.csv")
SECONDS_A_DAY = 86_400
"""24 hours: the end of the range of values, which begins at midnight."""
PER_MILLE_BY_HOUR = (
    32,
    22,
    15,
    11,
    9,
    10,
    22,
    36,
    46,
    46,
    47,
    50,
    52,
    52,
    55,
    54,
    50,
    57,
    65,
    61,
    55,
    56,
    53,
    44,
)
"""Share of pick-ups in each hour of the day in 2018 (TLC yellow-taxi trip records)."""


@datasets.register("taxi")
class Taxi(Dataset):
    """Real pick-up times where the data file is found, else drawn from the hourly table.

    >>> sample = Taxi().draw(10_000, np.random.default_rng(1))
    >>> bool(0.05 < sample.values.mean() / 43_200 - 1 < 0.3)
    True
    """

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Resample real times, or spread each hour's share evenly over the hour."""
        path = data_file(FILE, *PUBLISHED)
        if path is not None:
            times = saved_numbers(path) if path.name == FILE else pickup_seconds(path)
            if times.min() < 0 or times.max() >= SECONDS_A_DAY:
                raise InvalidFile(path, f"must hold seconds of the day, below {SECONDS_A_DAY}")
            values = rng.choice(times, users).astype(np.float64)
            source = f"TLC pick-up times, {users} drawn from {path.name}"
        else:
            share = np.array(PER_MILLE_BY_HOUR) / sum(PER_MILLE_BY_HOUR)
            hours = rng.choice(24, users, p=share)
            values = np.floor((hours + rng.random(users)) * 3600.0)
            source = f"TLC pick-up times, {users} drawn from the built-in hourly table"
        return Sample(values, 0.0, float(SECONDS_A_DAY), source)
