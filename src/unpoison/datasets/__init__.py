"""Datasets, one file each, found by name in `datasets`."""

from unpoison.datasets.base import Dataset, Sample, data_file, datasets
from unpoison.datasets.beta import Beta25, Beta52
from unpoison.datasets.covid import Covid19
from unpoison.datasets.publishers import covid_deaths, pickup_seconds, total_compensation
from unpoison.datasets.retirement import Retirement
from unpoison.datasets.taxi import Taxi

__all__ = [
    "Beta25",
    "Beta52",
    "Covid19",
    "Dataset",
    "Retirement",
    "Sample",
    "Taxi",
    "covid_deaths",
    "data_file",
    "datasets",
    "pickup_seconds",
    "total_compensation",
]
