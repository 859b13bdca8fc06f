"""Methods over all trials of a comparison: bias, error and error over the floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unpoison.simulation.trial import GROUPED, Trial


@dataclass(frozen=True)
class Score:
    """A method over all trials: mean squared error over the mean floor (NaN where that is 0).

    `located` is the share of trials in which the poisoned categories were found exactly, and
    `frequencies` are those of the last trial.

    >>> line = Score("emf", GROUPED, 10, 0.5, 0.0, 0.125, 1.25, 0.25, side="right", seconds=0.1)
    >>> line.to_dict()["mse_over_floor"]
    1.25
    """

    method: str
    collection: str
    trials: int
    mean: float
    bias: float
    mse: float
    mse_over_floor: float
    byzantine_fraction: float
    side: str
    seconds: float
    wasserstein: float = math.nan
    located: float = math.nan
    frequencies: dict[str, float] | None = None

    @property
    def label(self) -> str:
        """The method, marked where it had an ungrouped collection of its own."""
        return self.method if self.collection == GROUPED else f"{self.method} (ungrouped)"

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON, without those that have no value, such as the mean of categories.

        Of categories `side` is called `poisoned`.
        """
        facts = {key: value for key, value in asdict(self).items() if _present(value)}
        if self.frequencies is not None:
            facts["poisoned"] = facts.pop("side")
        return facts


def _present(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def score(rows: Sequence[Trial]) -> list[Score]:
    """One line a method and collection, in the order in which they first appear.

    >>> others = (0.5, 0.0625, 0.0625, 0.03, 0.25, "right", 0.1)
    >>> low, high = (Trial(0, "emf", GROUPED, mean, *others) for mean in (0.25, 0.75))
    >>> [(line.trials, line.bias, line.mse_over_floor) for line in score([low, high])]
    [(2, 0.0, 1.0)]
    """
    keys = dict.fromkeys((row.method, row.collection) for row in rows)
    return [_score([row for row in rows if (row.method, row.collection) == key]) for key in keys]


def _score(rows: list[Trial]) -> Score:
    def average(name: str) -> float:
        return float(np.mean([getattr(row, name) for row in rows]))

    sides, floor = [row.side for row in rows], average("floor")
    return Score(
        method=rows[0].method,
        collection=rows[0].collection,
        trials=len(rows),
        mean=average("mean"),
        bias=average("mean") - average("truth"),
        mse=average("squared_error"),
        mse_over_floor=average("squared_error") / floor if floor > 0 else math.nan,
        byzantine_fraction=average("byzantine_fraction"),
        # The most frequent; of equally frequent ones the first.
        side=max(dict.fromkeys(sides), key=sides.count),
        seconds=average("seconds"),
        wasserstein=average("wasserstein"),
        located=average("located"),
        frequencies=rows[-1].frequencies,
    )
