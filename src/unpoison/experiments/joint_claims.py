"""Claims about the joint filter: accuracy, γ̂, coverage, and the paper's schemes beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from unpoison.experiments.claims import Claim
from unpoison.experiments.panel import Panel
from unpoison.protocols import SCHEMES
from unpoison.protocols.joint import JOINT
from unpoison.types import FloatArray

__all__ = [
    "BOOTSTRAPS",
    "JOINT",
    "accuracy_claims",
    "column",
    "coverage_claim",
    "fraction_claim",
    "mse_over_floor",
    "rows_where",
    "schemes_claim",
]

BOOTSTRAPS = 2000
"""Resamples of a bootstrap: its 2.5 % quantile then rests on 50 of them."""


def column(rows: pa.Table, name: str) -> FloatArray:
    """A column as an array.

    >>> column(pa.table({"floor": [1, 2]}), "floor").tolist()
    [1.0, 2.0]
    """
    return np.array(rows[name].to_pylist(), dtype=np.float64)


def rows_where(rows: pa.Table, **where: object) -> pa.Table:
    """The rows in which columns have these values, with the measures that follow from others.

    >>> rows_where(pa.table({"method": ["joint", "emf"]}), method="joint").num_rows
    1
    """
    return Panel("", "squared_error", where).rows(rows)


def mse_over_floor(rows: pa.Table) -> float:
    """The mean squared error over the mean floor.

    >>> mse_over_floor(pa.table({"squared_error": [1.0, 3.0], "floor": [1.0, 1.0]}))
    2.0
    """
    return float(column(rows, "squared_error").mean() / column(rows, "floor").mean())


def _grid_cells(rows: pa.Table) -> dict[tuple[object, ...], pa.Table]:
    """The rows of each cell of the grid."""
    names = ("attack", "dataset", "epsilon", "gamma")
    keys = list(zip(*(rows[name].to_pylist() for name in names), strict=True))
    indices: dict[tuple[object, ...], list[int]] = {}
    for index, key in enumerate(keys):
        indices.setdefault(key, []).append(index)
    return {key: rows.take(pa.array(of_cell)) for key, of_cell in indices.items()}


def accuracy_claims(rows: pa.Table) -> list[Claim]:
    """Aims of mse/floor: its median, most cells, and with nobody attacking.

    >>> grid = {"attack": ["none"], "dataset": ["taxi"], "epsilon": [1.0], "gamma": [0.0]}
    >>> errors = {"method": ["joint"], "squared_error": [1.0], "floor": [1.0]}
    >>> [claim.confirmed for claim in accuracy_claims(pa.table({**grid, **errors}))]
    [True, True, True]
    """
    joint = rows_where(rows, method=JOINT)
    ratios = np.array([mse_over_floor(cell) for cell in _grid_cells(joint).values()])
    near = float(np.mean(ratios <= 10))
    quiet = mse_over_floor(rows_where(joint, attack="none"))
    return [
        Claim(
            "the median of mse/floor over cells is at most 3",
            float(np.median(ratios)) <= 3,
            f"{np.median(ratios):.2f}, over {len(ratios)} cells",
        ),
        Claim(
            "mse/floor is at most 10 in 90 per cent of cells",
            near >= 0.9,
            f"in {near:.1%}; the largest is {ratios.max():.0f}",
        ),
        Claim(
            "mse/floor is at most 1.3 when nobody attacks",
            quiet <= 1.3,
            f"{quiet:.2f}",
        ),
    ]


def schemes_claim(rows: pa.Table, labels: Mapping[str, str]) -> Claim:
    """For no attack is the joint filter worse than the best scheme, by a paired bootstrap.

    >>> errors = {"method": ["joint", *SCHEMES], "over_floor": [1.0, 2.0, 2.0, 2.0]}
    >>> rows = pa.table({"attack": ["none"] * 4, **errors})
    >>> schemes_claim(rows, {"none": "nobody"}).confirmed
    True
    """
    worse = [
        label
        for attack, label in labels.items()
        if _lower_bound(rows_where(rows, attack=attack)) > 0
    ]
    return Claim(
        "for no attack is it worse than the best of EMF, EMF*, CEMF*",
        not worse,
        f"worse for {', '.join(worse)}" if worse else "by a paired bootstrap at 95 %",
    )


def _lower_bound(rows: pa.Table) -> float:
    """The lower end of a 95 % bootstrap interval of the joint error less the best scheme's."""
    errors = {
        name: column(rows_where(rows, method=name), "over_floor") for name in (JOINT, *SCHEMES)
    }
    best = min(SCHEMES, key=lambda name: float(errors[name].mean()))
    excess = errors[JOINT] - errors[best]
    rng = np.random.default_rng(0)
    means = rng.choice(excess, (BOOTSTRAPS, len(excess))).mean(axis=1)
    return float(np.quantile(means, 0.025))


def fraction_claim(rows: pa.Table, attacks: Sequence[str]) -> Claim:
    """The aim of γ̂ under these attacks.

    >>> grid = {"attack": ["point:C"], "dataset": ["taxi"], "epsilon": [1.0], "gamma": [0.1]}
    >>> rows = pa.table({**grid, "method": ["joint"], "gamma_error": [0.001]})
    >>> fraction_claim(rows, ["point:C"]).confirmed
    True
    """
    joint = rows_where(rows, method=JOINT, attack=tuple(attacks))
    cells = _grid_cells(joint).values()
    errors = np.array([column(cell, "gamma_error").mean() for cell in cells])
    near = float(np.mean(errors <= 0.005))
    return Claim(
        "γ̂ is within 0.005 of γ in 90 per cent of cells, without noise",
        near >= 0.9,
        f"in {near:.1%}; the largest error is {errors.max():.3f}",
    )


def coverage_claim(rows: pa.Table, labels: Mapping[str, str]) -> Claim:
    """For every attack, intervals cover the truth or the verdict says that the data cannot tell.

    >>> rows = {"method": ["joint"], "attack": ["none"], "covered": [1.0], "doubt": [0.0]}
    >>> coverage_claim(pa.table(rows), {"none": "nobody"}).confirmed
    True
    """
    shares = {}
    for attack, label in labels.items():
        of_attack = rows_where(rows, method=JOINT, attack=attack)
        covered, doubt = column(of_attack, "covered"), column(of_attack, "doubt")
        shares[label] = float(np.mean(np.maximum(covered, doubt)))
    least = min(shares, key=lambda label: shares[label])
    low = ", ".join(f"{label} {share:.1%}" for label, share in shares.items() if share < 0.93)
    return Claim(
        "intervals cover in 93 per cent of trials for every attack, or the verdict says that the "
        "data cannot tell",
        not low,
        f"below: {low}" if low else f"the least is {shares[least]:.1%} ({least})",
    )
