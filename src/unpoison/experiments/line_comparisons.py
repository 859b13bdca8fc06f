"""Comparisons of the lines of panels, for claims: how often one method beats another."""

from __future__ import annotations

from collections.abc import Sequence

from unpoison.experiments.panel import UNGROUPED_SUFFIX, Lines

BETTER_RIVAL = "the better rival"
"""The name of a line that takes the smaller error of the rivals at every point."""


def wins(panels: Sequence[Lines], one: str, other: str) -> int:
    """The number of points of all panels at which one line is below another.

    >>> wins([{"a": {1.0: 1.0, 2.0: 3.0}, "b": {1.0: 2.0, 2.0: 2.0}}], "a", "b")
    1
    """
    return sum(value < lines[other][x] for lines in panels for x, value in lines[one].items())


def wins_over_rivals(panels: Sequence[Lines], method: str) -> int:
    """The number of points of all panels at which a method is below both rivals.

    >>> rivals = {"ostrich (ungrouped)": {1.0: 3.0}, "trimming (ungrouped)": {1.0: 2.0}}
    >>> wins_over_rivals([{**rivals, "emf": {1.0: 1.0}}], "emf")
    1
    """
    with_rival = [{**lines, BETTER_RIVAL: better_rival(lines)} for lines in panels]
    return wins(with_rival, method, BETTER_RIVAL)


def better_rival(lines: Lines) -> dict[float, float]:
    """The smaller error of the rivals on ungrouped collections, their best case, at every point.

    >>> better_rival({"ostrich (ungrouped)": {1.0: 3.0}, "trimming (ungrouped)": {1.0: 2.0}})
    {1.0: 2.0}
    """
    rivals = [line for name, line in lines.items() if name.endswith(UNGROUPED_SUFFIX)]
    return {x: min(line[x] for line in rivals if x in line) for x in rivals[0]}
