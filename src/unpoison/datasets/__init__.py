"""Datasets, one file each, by name in `datasets`; every file of the folder is loaded."""

from unpoison.datasets.base import Dataset, Sample, data_file, datasets
from unpoison.datasets.beta import Beta25, Beta52
from unpoison.datasets.covid import Covid19
from unpoison.datasets.ends import Ends
from unpoison.datasets.lattice import Lattice
from unpoison.datasets.publishers import covid_deaths, pickup_seconds, total_compensation
from unpoison.datasets.retirement import Retirement
from unpoison.datasets.smooth import Smooth
from unpoison.datasets.spikes import Spikes
from unpoison.datasets.taxi import Taxi
from unpoison.registry import load_modules

__all__ = [
    "Beta25",
    "Beta52",
    "Covid19",
    "Dataset",
    "Ends",
    "Lattice",
    "Retirement",
    "Sample",
    "Smooth",
    "Spikes",
    "Taxi",
    "covid_deaths",
    "data_file",
    "datasets",
    "pickup_seconds",
    "total_compensation",
]

load_modules(__name__)
