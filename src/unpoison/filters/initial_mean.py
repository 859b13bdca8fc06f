"""O': the first guess at the honest mean, which bounds where poison may be (Thm. 2)."""

from __future__ import annotations

import math

import numpy as np

from unpoison.buckets import Buckets
from unpoison.errors import InvalidParameter
from unpoison.filters.em import maximise
from unpoison.filters.emf import GroupCounts
from unpoison.mechanisms import Mechanism, SquareWaveMechanism
from unpoison.mechanisms.integer import IntegerWindowMechanism
from unpoison.types import FloatArray, IntArray

DEFAULT_GAMMA_SUP = 0.5


def check_gamma_sup(gamma_sup: float) -> None:
    """γ_sup bounds the share of attackers."""
    if not 0 < gamma_sup <= 0.5:
        raise InvalidParameter("gamma_sup", "must be in (0, 1/2]", gamma_sup)


def middle_of_inputs(mechanism: Mechanism) -> float:
    """The paper's default O': 0 for PM, 1/2 for SW."""
    return (mechanism.input_low + mechanism.input_high) / 2


def pessimistic_mean(
    mechanism: Mechanism, cell_counts: IntArray, side: str, gamma_sup: float = DEFAULT_GAMMA_SUP
) -> float:
    """O' ≤ O if the right side is poisoned, O' ≥ O if the left (Thm. 2, corrected and clipped).

    O' = (Σ V' − Σ_T)/(N − ⌈γ_sup N⌉) with T the ⌈γ_sup N⌉ most extreme reports of that side. It is
    clipped to the input domain, which keeps it pessimistic. For SW it is the mean that EMS finds
    behind the remaining reports, as the paper has it; EMS leans inwards, so with many attackers at
    a small ε that one can end up on the wrong side of O.

    >>> from unpoison.mechanisms import make
    >>> pm = make("piecewise", 4.0, cells=4)
    >>> round(pessimistic_mean(pm, np.array([0, 2, 2, 0]), "right"), 3)
    -0.328
    """
    check_gamma_sup(gamma_sup)
    kept = without_extremes(cell_counts, side, gamma_sup)
    if _is_square_wave(mechanism):
        return _smoothed_mean(mechanism, kept)
    values = mechanism.decode(mechanism.bucket_values(mechanism.grid()))
    mean = float(kept @ values / kept.sum())
    return min(max(mean, mechanism.input_low), mechanism.input_high)


def without_extremes(cell_counts: IntArray, side: str, share: float) -> FloatArray:
    """Counts with the ⌈share·N⌉ largest (side right) or smallest (left) reports taken away.

    >>> without_extremes(np.array([1, 2, 3]), "right", 0.5).tolist()
    [1.0, 2.0, 0.0]
    """
    counts = cell_counts.astype(np.float64)
    if side == "left":
        counts = counts[::-1]
    total = counts.sum()
    keep = total - math.ceil(share * total)
    before = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
    kept: FloatArray = np.clip(keep - before, 0.0, counts)
    return kept[::-1] if side == "left" else kept


def _is_square_wave(mechanism: Mechanism) -> bool:
    if isinstance(mechanism, IntegerWindowMechanism):
        mechanism = mechanism.twin
    return isinstance(mechanism, SquareWaveMechanism)


def _smoothed_mean(mechanism: Mechanism, kept: FloatArray) -> float:
    """The mean of the histogram that EMS finds behind the counts (Section V-D)."""
    buckets = Buckets.for_reports(mechanism, int(kept.sum()))
    counts = GroupCounts(buckets, np.add.reduceat(kept, buckets.cell_edges[:-1]))
    (solution,) = maximise([counts.ems()])
    return float(solution.honest @ buckets.input_values / solution.honest.sum())
