"""The joint filter beside the paper's schemes: under every kind of attack, and under none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unpoison.experiments.base import Claim, Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.common import NAMES, SCHEMES
from unpoison.experiments.figure import Panel
from unpoison.types import FloatArray

USERS, QUICK_USERS = 1_000_000, 200_000
BUDGETS = (0.5, 2.0)
GAMMAS = (0.1, 0.3)
JOINT = "joint"
ATTACKS = {
    "uniform:3C/4,C": "[3C/4, C]",
    "uniform:C/2,C": "[C/2, C]",
    "uniform:O,C/2": "[O, C/2]",
    "uniform:O,C": "[O, C]",
    "point:C": "point at C",
    "gaussian:C/2,C": "Gaussian",
    "evasion:0.1": "evasion 0.1",
    "evasion:0.3": "evasion 0.3",
    "evasion:0.5": "evasion 0.5",
    "adaptive": "two largest ε",
    "opposite": "opposite sides",
    "uniform:-C,-C/2": "left side",
    "noise": "whole domain",
}
NOBODY = {"none": "nobody"}
NOISE = "noise"
BOOTSTRAPS = 2000


def _cell(
    dataset: str,
    epsilon: float,
    attack: str,
    gamma: float,
    methods: tuple[str, ...],
    trials: int,
    quick: bool,
) -> Cell:
    """A million users, whose counts are drawn directly."""
    return Cell(
        dataset=dataset,
        users=QUICK_USERS if quick else USERS,
        mechanism="piecewise",
        epsilon=epsilon,
        attack=attack,
        gamma=gamma,
        methods=methods,
        trials=trials,
        fast=True,
    )


@experiments.register("joint", order=11)
class JointFigure(Experiment):
    """Four datasets at two ε with two shares of attackers; counts are drawn directly.

    >>> len(JointFigure().cells(quick=False))
    216
    """

    title = "The joint filter beside the paper's schemes (ε0 = 1/16)"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """Every attack, and nobody."""
        attacked = [(attack, gamma) for attack in ATTACKS for gamma in GAMMAS]
        methods, trials = (JOINT, *SCHEMES), 1 if quick else 10
        return [
            _cell(dataset, epsilon, attack, gamma, methods, trials, quick)
            for attack, gamma in [*attacked, ("none", 0.0)]
            for dataset in (list(NAMES)[:2] if quick else NAMES)
            for epsilon in BUDGETS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """Errors, γ̂ and coverage against the attack, over all datasets."""
        labels = {**ATTACKS, **NOBODY}
        errors = [
            Panel(
                f"ε = {epsilon:g}, γ = {gamma:g} and nobody",
                "over_floor",
                {"epsilon": epsilon, "gamma": (gamma, 0.0)},
                against="attack",
                labels=labels,
            )
            for epsilon in BUDGETS
            for gamma in GAMMAS
        ]
        others = [
            Panel("share of attackers", "gamma_error", against="attack", labels=labels),
            Panel("95 % intervals", "covered", against="attack", labels=labels, logarithmic=False),
        ]
        return errors + others

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """What the filter is to reach."""
        return [*_accuracy(table), _against_schemes(table), _shares(table), _coverage(table)]


@experiments.register("joint-nobody", order=12)
class NobodyFigure(Experiment):
    """Nobody attacks, in a thousand collections: how often the p-value is small.

    >>> sum(cell.trials for cell in NobodyFigure().cells(quick=False))
    1000
    """

    title = "The joint filter when nobody attacks: false alarms"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """All datasets at both ε."""
        trials = 5 if quick else 125
        return [
            _cell(dataset, epsilon, "none", 0.0, (JOINT,), trials, quick)
            for dataset in NAMES
            for epsilon in BUDGETS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """False alarms, errors and coverage."""
        return [
            Panel(title, measure, by="dataset", labels=NAMES, logarithmic=False)
            for title, measure in (
                ("p < 0.05", "suspicious"),
                ("error", "over_floor"),
                ("95 % intervals", "covered"),
            )
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """A p-value must be one."""
        rows = _of(table)
        alarms, error = float(np.mean(_column(rows, "suspicious"))), _ratio(rows)
        return [
            Claim(
                "p < 0.05 in 3 to 7 per cent of collections without attackers",
                0.03 <= alarms <= 0.07,
                f"{alarms:.1%} of {rows.num_rows}",
            ),
            Claim(
                "mse/floor is at most 1.3 when nobody attacks",
                error <= 1.3,
                f"{error:.2f}",
            ),
        ]


def _column(rows: pa.Table, name: str) -> FloatArray:
    return np.array(rows[name].to_pylist(), dtype=np.float64)


def _of(rows: pa.Table, **where: object) -> pa.Table:
    return Panel("", "squared_error", where).rows(rows)


def _ratio(rows: pa.Table) -> float:
    """The mean squared error over the mean floor."""
    return float(_column(rows, "squared_error").mean() / _column(rows, "floor").mean())


def _cells(rows: pa.Table) -> dict[tuple[object, ...], pa.Table]:
    """The rows of each cell of the grid."""
    names = ("attack", "dataset", "epsilon", "gamma")
    keys = list(zip(*(rows[name].to_pylist() for name in names), strict=True))
    places: dict[tuple[object, ...], list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return {key: rows.take(pa.array(found)) for key, found in places.items()}


def _accuracy(rows: pa.Table) -> list[Claim]:
    joint = _of(rows, method=JOINT)
    ratios = np.array([_ratio(cell) for cell in _cells(joint).values()])
    near = float(np.mean(ratios <= 10))
    calm = _ratio(_of(joint, attack="none"))
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
            calm <= 1.3,
            f"{calm:.2f}",
        ),
    ]


def _against_schemes(rows: pa.Table) -> Claim:
    """For every attack: is the joint filter worse than the best scheme beyond a paired bound?"""
    worse = [
        label
        for attack, label in {**ATTACKS, **NOBODY}.items()
        if _lower_bound(_of(rows, attack=attack)) > 0
    ]
    return Claim(
        "for no attack is it worse than the best of EMF, EMF*, CEMF*",
        not worse,
        f"worse for {', '.join(worse)}" if worse else "by a paired bootstrap at 95 %",
    )


def _lower_bound(rows: pa.Table) -> float:
    """The lower end of a 95 % bootstrap interval of its error less the best scheme's."""
    errors = {name: _column(_of(rows, method=name), "over_floor") for name in (JOINT, *SCHEMES)}
    best = min(SCHEMES, key=lambda name: float(errors[name].mean()))
    apart = errors[JOINT] - errors[best]
    rng = np.random.default_rng(0)
    means = rng.choice(apart, (BOOTSTRAPS, len(apart))).mean(axis=1)
    return float(np.quantile(means, 0.025))


def _shares(rows: pa.Table) -> Claim:
    joint = _of(rows, method=JOINT, attack=tuple(each for each in ATTACKS if each != NOISE))
    off = np.array([_column(cell, "gamma_error").mean() for cell in _cells(joint).values()])
    near = float(np.mean(off <= 0.005))
    return Claim(
        "γ̂ is within 0.005 of γ in 90 per cent of cells, without noise",
        near >= 0.9,
        f"in {near:.1%}; the largest error is {off.max():.3f}",
    )


def _coverage(rows: pa.Table) -> Claim:
    """By attack: intervals that cover, or that come with the word that the data cannot tell."""
    shares = {}
    for attack, label in {**ATTACKS, **NOBODY}.items():
        found = _of(rows, method=JOINT, attack=attack)
        covered, doubt = _column(found, "covered"), _column(found, "doubt")
        shares[label] = float(np.mean(np.maximum(covered, doubt)))
    least = min(shares, key=lambda label: shares[label])
    low = ", ".join(f"{label} {share:.1%}" for label, share in shares.items() if share < 0.93)
    return Claim(
        "intervals cover in 93 per cent of trials for every attack, or the verdict says that the "
        "data cannot tell",
        not low,
        f"below: {low}" if low else f"the least is {shares[least]:.1%} ({least})",
    )
