"""Datasets to simulate with: values in natural units, and where they came from."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.registry import Registry

DATA_FOLDERS = ("../shared/data",)


@dataclass(frozen=True)
class Sample:
    """One value a user, the range that they are normalised from, and a word on the source.

    Values are floats. Of a sample of categories they are names, all among `categories`, and there
    is no range: `low` and `high` are NaN.

    >>> from unpoison import Plan
    >>> sample = Sample(np.array([2.5, 7.5]), low=0.0, high=10.0, source="two made-up users")
    >>> Plan.new(epsilon=1.0, low=sample.low, high=sample.high).normalise(sample.values).tolist()
    [-0.5, 0.5]
    >>> drinks = np.array(["tea", "milk", "tea"])
    >>> sample = Sample(drinks, np.nan, np.nan, "three made-up users", ("tea", "coffee", "milk"))
    >>> Plan.new("k-rr", epsilon=1.0, categories=sample.categories).cells
    3
    """

    values: NDArray[Any]
    low: float
    high: float
    source: str
    categories: tuple[str, ...] | None = None


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
