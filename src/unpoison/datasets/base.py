"""Datasets to simulate with: values in natural units, and where they came from."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InvalidFile
from unpoison.registry import Registry

DATA_FOLDERS = ("../shared/data",)
"""Folders in which files of real data are looked for, after the one that UNPOISON_DATA names."""


@dataclass(frozen=True)
class Sample:
    """One value a user, the range that they are normalised from, and a description of the source.

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
        """A sample of that many users."""


datasets: Registry[type[Dataset]] = Registry("dataset")


def data_file(*names: str) -> Path | None:
    """The path of a file of real data, in the folder UNPOISON_DATA or in ../shared/data, if any.

    The first folder that has one decides; in it the names, which may be patterns, in their order,
    and of the files of one pattern the first in the order of the alphabet.

    >>> data_file("no-such-file.npy", "no_such_table_*.csv") is None
    True
    """
    folders = [os.environ.get("UNPOISON_DATA"), *DATA_FOLDERS]
    for folder in filter(None, folders):
        for name in names:
            for path in sorted(Path(folder).glob(name)):
                if path.is_file():
                    return path
    return None


def saved_numbers(path: Path) -> NDArray[np.float64]:
    """The numbers in a NumPy file, one a user.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "heights.npy")
    ...     np.save(path, [170, 180])
    ...     saved_numbers(path).tolist()
    [170.0, 180.0]
    """
    fault = InvalidFile(path, "must be a NumPy file with one column of finite numbers")
    try:
        with path.open("rb") as file:
            numbers = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError):
        raise fault from None
    plain = numbers.dtype.kind in "iuf" and numbers.ndim == 1
    if not plain or not len(numbers) or not np.isfinite(numbers).all():
        raise fault
    return np.asarray(numbers, dtype=np.float64)
