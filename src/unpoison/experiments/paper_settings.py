"""Settings of the paper's experiments: datasets at their sizes, poison, budgets and methods."""

from __future__ import annotations

DATASET_USERS = {
    "beta-2-5": 1_000_000,
    "beta-5-2": 1_000_000,
    "taxi": 1_048_575,
    "retirement": 606_507,
}
"""The paper's datasets, each with as many users as there."""
QUICK_USERS = 50_000
"""Users of every dataset in a quick run, which is to take minutes."""
DATASET_NAMES = {
    "beta-2-5": "Beta(2,5)",
    "beta-5-2": "Beta(5,2)",
    "taxi": "Taxi",
    "retirement": "Retirement",
}
POISON_RANGES = {
    "uniform:3C/4,C": "[3C/4, C]",
    "uniform:C/2,C": "[C/2, C]",
    "uniform:O,C/2": "[O, C/2]",
    "uniform:O,C": "[O, C]",
}
BUDGETS = (0.25, 0.5, 1.0, 1.5, 2.0)
"""ε of DAP in the paper's experiments."""
RIVALS = ("ostrich", "trimming")
GAMMA = 0.25
"""The share of attackers, unless a figure varies it."""


def users_of(dataset: str, quick: bool) -> int:
    """The number of users of a dataset: the paper's, or few in a quick run.

    >>> users_of("retirement", quick=False), users_of("retirement", quick=True)
    (606507, 50000)
    """
    return QUICK_USERS if quick else DATASET_USERS[dataset]
