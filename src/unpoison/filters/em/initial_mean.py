"""O': the first guess at the honest mean, which bounds where poison may be (Thm. 2)."""

from __future__ import annotations

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.buckets import Buckets
from unpoison.filters.em.group_counts import GroupCounts
from unpoison.filters.em.loop import MAX_ITERATIONS, maximise
from unpoison.filters.sides import without_extremes
from unpoison.mechanisms import Mechanism
from unpoison.types import IntArray

DEFAULT_GAMMA_SUP = MOST_ATTACKERS
"""γ_sup of the paper: its threat model bounds attackers by one half."""


def check_gamma_sup(gamma_sup: float) -> None:
    """Refuse a γ_sup, the assumed bound on the share of attackers, that is no minority.

    >>> check_gamma_sup(0.6)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: gamma_sup must be in (0, 1/2]; received 0.6
    """
    if not 0 < gamma_sup <= MOST_ATTACKERS:
        raise InvalidParameter("gamma_sup", "must be in (0, 1/2]", gamma_sup)


def middle_of_inputs(mechanism: Mechanism) -> float:
    """The paper's default O': 0 for PM, 1/2 for SW.

    >>> from unpoison.mechanisms import make
    >>> middle_of_inputs(make("piecewise", 1.0)), middle_of_inputs(make("square-wave", 1.0))
    (0.0, 0.5)
    """
    return (mechanism.input_low + mechanism.input_high) / 2


def pessimistic_mean(
    mechanism: Mechanism, cell_counts: IntArray, side: str, gamma_sup: float = DEFAULT_GAMMA_SUP
) -> float:
    """O' ≤ O if the right side is poisoned, O' ≥ O if the left (Thm. 2, corrected and clipped).

    O' = (Σ V' − Σ_T)/(N − ⌈γ_sup N⌉) with T the ⌈γ_sup N⌉ most extreme reports of that side, each
    report decoded. It is clipped to the input domain, which keeps it pessimistic.

    >>> from unpoison.mechanisms import make
    >>> pm = make("piecewise", 4.0, cells=4)
    >>> round(pessimistic_mean(pm, np.array([0, 2, 2, 0]), "right"), 3)
    -0.328
    """
    check_gamma_sup(gamma_sup)
    trimmed = without_extremes(cell_counts, side, gamma_sup)
    mean = float(trimmed @ mechanism.decoded_cells() / trimmed.sum())
    return min(max(mean, mechanism.input_low), mechanism.input_high)


def smoothed_mean(
    mechanism: Mechanism,
    cell_counts: IntArray,
    side: str,
    gamma_sup: float = DEFAULT_GAMMA_SUP,
    max_iterations: int = MAX_ITERATIONS,
) -> float:
    """The paper's O' for SW (Section V-D): the mean that EMS finds behind the remaining reports.

    EMS leans inwards, so with many attackers at a small ε it can end up on the wrong side of O.

    >>> from unpoison.mechanisms import make
    >>> sw = make("square-wave", 4.0, cells=4)
    >>> smoothed_mean(sw, np.array([90, 90, 90, 90]), "right") < 0.5
    True
    """
    check_gamma_sup(gamma_sup)
    trimmed = without_extremes(cell_counts, side, gamma_sup)
    buckets = Buckets.for_reports(mechanism, int(trimmed.sum()))
    counts = GroupCounts(buckets, np.add.reduceat(trimmed, buckets.cell_edges[:-1]))
    (solution,) = maximise([counts.ems()], max_iterations)
    return solution.mean_of(buckets.input_values)
