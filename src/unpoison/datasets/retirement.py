"""Retirement: total compensation of San Francisco's employees, from 10,000 to 600,000 dollars.

The paper names the interval [10000, 60000], but its mean fits only one ten times as long; see
the guide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.datasets.base import Dataset, Sample, data_file, datasets, saved_numbers
from unpoison.datasets.publishers import total_compensation
from unpoison.errors import InvalidFile

FILES = ("sf_total_pay_benefits_transparentca.npy", "sf_total_compensation_datasf.npy")
PUBLISHED = "[Ee]mployee_[Cc]ompensation*.csv"
LOW, HIGH = 10_000.0, 600_000.0
"""Dollars. The paper prints 60,000 as the upper end, but its mean fits only 600,000."""
STEP = 20_000.0
"""Width in dollars of the bins of `PER_TEN_THOUSAND_BY_STEP`; the first begins at `LOW`."""
PER_TEN_THOUSAND_BY_STEP = (
    *(1017, 552, 548, 1320, 1673, 1364, 1025),  # from 10,000
    *(826, 653, 408, 270, 176, 94, 38),  # from 150,000
    *(18, 8, 5, 4, 2, 1, 1),  # from 290,000 to 430,000
)
"""Share of employees in each step of 20,000 dollars in 2012 to 2014 (Transparent California)."""


@datasets.register("retirement")
class Retirement(Dataset):
    """Real compensation where a data file is found, else drawn from the table of steps.

    >>> sample = Retirement().draw(10_000, np.random.default_rng(1))
    >>> sample.low, sample.high, bool(105_000 < sample.values.mean() < 120_000)
    (10000.0, 600000.0, True)
    """

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Resample what is in the interval, or spread each step's share evenly over the step."""
        path = data_file(*FILES, PUBLISHED)
        if path is not None:
            dollars = saved_numbers(path) if path.name in FILES else total_compensation(path)
            inside = dollars[(dollars >= LOW) & (dollars <= HIGH)]
            if not len(inside):
                raise InvalidFile(path, f"holds nothing in [{LOW:g}, {HIGH:g}]")
            values, where = rng.choice(inside, users), path.name
        else:
            values, where = _draw_from_table(users, rng), "the built-in table of 2012 to 2014"
        source = f"San Francisco total compensation, {users} drawn from {where}"
        return Sample(values, LOW, HIGH, source)


def _draw_from_table(users: int, rng: np.random.Generator) -> NDArray[np.float64]:
    share = np.array(PER_TEN_THOUSAND_BY_STEP) / sum(PER_TEN_THOUSAND_BY_STEP)
    steps = rng.choice(len(share), users, p=share)
    return LOW + STEP * (steps + rng.random(users))
