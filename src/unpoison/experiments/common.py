"""What the paper's experiments share: datasets at their sizes, ranges of poison, schemes."""

from __future__ import annotations

from collections.abc import Sequence

from unpoison.experiments.figure import Lines

USERS = {
    "beta-2-5": 1_000_000,
    "beta-5-2": 1_000_000,
    "taxi": 1_048_575,
    "retirement": 606_507,
}
"""The paper's datasets, each with as many users as there."""
QUICK_USERS = 50_000
NAMES = {
    "beta-2-5": "Beta(2,5)",
    "beta-5-2": "Beta(5,2)",
    "taxi": "Taxi",
    "retirement": "Retirement",
}
RANGES = {
    "uniform:3C/4,C": "[3C/4, C]",
    "uniform:C/2,C": "[C/2, C]",
    "uniform:O,C/2": "[O, C/2]",
    "uniform:O,C": "[O, C]",
}
BUDGETS = (0.25, 0.5, 1.0, 1.5, 2.0)
SCHEMES = ("emf", "emf-star", "cemf-star")
RIVALS = ("ostrich", "trimming")
GAMMA = 0.25
RIVAL = "the better rival"


def users_of(dataset: str, quick: bool) -> int:
    """As many as the paper has, or few.

    >>> users_of("retirement", quick=False), users_of("retirement", quick=True)
    (606507, 50000)
    """
    return QUICK_USERS if quick else USERS[dataset]


def wins(found: Sequence[Lines], one: str, other: str) -> int:
    """At how many places of all panels one line is below another.

    >>> wins([{"a": {1.0: 1.0, 2.0: 3.0}, "b": {1.0: 2.0, 2.0: 2.0}}], "a", "b")
    1
    """
    return sum(value < lines[other][at] for lines in found for at, value in lines[one].items())


def wins_over_rivals(found: Sequence[Lines], method: str) -> int:
    """At how many places of all panels a method is below both rivals.

    >>> rivals = {"ostrich (ungrouped)": {1.0: 3.0}, "trimming (ungrouped)": {1.0: 2.0}}
    >>> wins_over_rivals([{**rivals, "emf": {1.0: 1.0}}], "emf")
    1
    """
    return wins([{**lines, RIVAL: least_rival(lines)} for lines in found], method, RIVAL)


def least_rival(lines: Lines) -> dict[float, float]:
    """The smaller error of the rivals on ungrouped collections, their best case, at every place.

    >>> least_rival({"ostrich (ungrouped)": {1.0: 3.0}, "trimming (ungrouped)": {1.0: 2.0}})
    {1.0: 2.0}
    """
    rivals = [line for name, line in lines.items() if name.endswith("(ungrouped)")]
    return {at: min(line[at] for line in rivals if at in line) for at in rivals[0]}
