"""Datasets to simulate with: values in natural units, and where they came from."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unpoison.registry import Registry
from unpoison.types import FloatArray

DATA_FOLDERS = ("../shared/data",)


@dataclass(frozen=True)
class Sample:
    """One value a user, the range that they are normalised from, and a word on the source.

    >>> from unpoison import Plan
    >>> sample = Sample(np.array([2.5, 7.5]), low=0.0, high=10.0, source="two made-up users")
    >>> Plan.new(epsilon=1.0, low=sample.low, high=sample.high).normalise(sample.values).tolist()
    [-0.5, 0.5]
    """

    values: FloatArray
    low: float
    high: float
    source: str


class Dataset(ABC):
    """A population to draw users from.

    >>> class Coins(Dataset):
    ...     def draw(self, users, rng):
    ...         return Sample(rng.integers(2, size=users) * 1.0, 0.0, 1.0, "fair coins")
    >>> len(Coins().draw(10, np.random.default_rng(1)).values)
    10
    """

    @abstractmethod
    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """As many users as asked."""


datasets: Registry[type[Dataset]] = Registry("dataset")


def data_file(name: str) -> Path | None:
    """A file of real data, in the folder UNPOISON_DATA or in ../shared/data, if it is there.

    >>> data_file("no-such-file.npy") is None
    True
    """
    folders = [os.environ.get("UNPOISON_DATA"), *DATA_FOLDERS]
    for folder in folders:
        if folder and (path := Path(folder) / name).is_file():
            return path
    return None
