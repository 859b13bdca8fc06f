"""The joint filter on collections that nobody chose: a thousand drawn at random, half poisoned."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.panel import Panel
from unpoison.experiments.unseen_collections import (
    ATTACKS,
    EPSILON_SLICES,
    MECHANISMS,
    NOBODY,
    SHAPES,
    UNSEEABLE,
    USER_SLICES,
    drawn_cells,
)
from unpoison.experiments.unseen_measures import Collections, per_cent

COUNT, QUICK_COUNT = 500, 15
"""Poisoned collections, and as many quiet ones: 1 % of them is 5. Quick: each attack once."""
SLICES = {
    "attack": ("kind", (*ATTACKS, NOBODY)),
    "ε": ("epsilon_slice", tuple(EPSILON_SLICES)),
    "users": ("users_slice", tuple(USER_SLICES)),
    "mechanism": ("mechanism", MECHANISMS),
    "values": ("dataset", SHAPES),
}
"""The columns by which collections are put apart, with their values in order."""
AIMED_SLICES = ("attack", "ε", "users")
VISIBLE = tuple(kind for kind in ATTACKS if kind not in UNSEEABLE)


@experiments.register("unseen", order=14)
class UnseenFigure(Experiment):
    """Five hundred poisoned collections and as many in which nobody attacks.

    >>> len(UnseenFigure().cells(quick=False))
    1000
    """

    title = "The joint filter on a thousand collections drawn at random"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """The poisoned collections, then the quiet ones."""
        count = QUICK_COUNT if quick else COUNT
        return [cell for poisoned in (True, False) for cell in drawn_cells(count, poisoned, quick)]

    def panels(self, quick: bool) -> list[Panel]:
        """Coverage and errors against the attack, ε and the number of users.

        Everybody may have one value at an end of the range, with a floor of almost 0: such a
        collection would be the whole of a mean.
        """
        return [
            Panel(
                f"{title} by {name}",
                measure,
                against=SLICES[name][0],
                labels={value: value for value in SLICES[name][1]},
                logarithmic=of_errors,
                median=of_errors,
            )
            for title, measure, of_errors in (
                ("95 % intervals", "covered", False),
                ("median error", "over_floor", True),
            )
            for name in AIMED_SLICES
        ]

    def tables(self, table: pa.Table, quick: bool) -> dict[str, list[list[str]]]:
        """Poisoned collections in slices of every kind, then the quiet ones."""
        everything = Collections(table)
        poisoned, quiet = everything.where("kind", *ATTACKS), everything.where("kind", NOBODY)
        tables = {
            f"Poisoned, by {name}": [poisoned.head(name), *_rows(poisoned, name)] for name in SLICES
        }
        for name in list(SLICES)[1:]:
            rows = [part.quiet_row(label) for label, part in _slices(quiet, name)]
            tables[f"Quiet, by {name}"] = [quiet.quiet_head(name), *rows]
        return tables

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """The aims: intervals, silent errors, accuracy, false alarms, the worst case, the time."""
        everything = Collections(table)
        visible, quiet = everything.where("kind", *VISIBLE), everything.where("kind", NOBODY)
        unseeable = everything.where("kind", *UNSEEABLE)
        return [
            *_coverage_claims(visible, quiet),
            _silence_claim(visible, quiet),
            *_accuracy_claims(visible),
            *_quiet_claims(quiet),
            _worst_case_claim(unseeable),
            *_time_claims(everything),
        ]


def _rows(collections: Collections, name: str) -> list[list[str]]:
    return [part.row(label) for label, part in _slices(collections, name)]


def _slices(collections: Collections, name: str) -> Iterator[tuple[str, Collections]]:
    """The slices of one kind that are not empty; and all of them, without those not to be seen."""
    column, values = SLICES[name]
    for value in values:
        part = collections.where(column, value)
        if len(part):
            yield value, part
    together = collections.where("kind", *VISIBLE, NOBODY)
    if len(together):
        apart = len(together) < len(collections)
        yield f"all but {', '.join(UNSEEABLE)}" if apart else "all", together


def _coverage_claims(visible: Collections, quiet: Collections) -> list[Claim]:
    """Intervals cover in all, and in every slice."""
    both = (("poisoned", visible), ("quiet", quiet))
    shares = {label: part.covered for label, part in both}
    slices = {
        f"{label}, {name} {value}": part.covered
        for label, collections in both
        for name in AIMED_SLICES
        for value, part in _slices(collections, name)
    }
    lowest = min(slices, key=lambda name: slices[name])
    below = sum(share < 0.9 for share in slices.values())
    return [
        Claim(
            "intervals cover in at least 93 per cent of collections, poisoned and quiet ones",
            min(shares.values()) >= 0.93,
            ", ".join(f"{share:.1%} of {label} ones" for label, share in shares.items()),
        ),
        Claim(
            "intervals cover in at least 90 per cent of every slice by attack, ε and users",
            below == 0,
            f"the least is {slices[lowest]:.1%} ({lowest}); {below} slices are below",
        ),
    ]


def _silence_claim(visible: Collections, quiet: Collections) -> Claim:
    """Wrong answers say so."""
    silent = {"poisoned": visible, "quiet": quiet}
    shares = {label: part.silently_wrong for label, part in silent.items()}
    far = {label: part.far_off for label, part in silent.items()}
    return Claim(
        "the truth is outside an interval that does not doubt in at most 1 per cent",
        max(shares.values()) <= 0.01,
        ", ".join(
            f"{shares[label]:.1%} of {label} ones (by more than half its width {far[label]:.1%})"
            for label in silent
        ),
    )


def _accuracy_claims(visible: Collections) -> list[Claim]:
    """Quantiles of the squared error over the floor."""
    return [
        Claim(
            f"mse/floor is at most {aim:g} in {share:.0%} of poisoned collections",
            visible.over_floor(share) <= aim,
            f"{visible.over_floor(share):.3g}; of someone who knows what attackers send "
            f"{visible.informed_over_floor(share):.3g}",
        )
        for share, aim in ((0.5, 1.1), (0.9, 5.0), (0.95, 20.0))
    ]


def _quiet_claims(quiet: Collections) -> list[Claim]:
    """False alarms: by the p-value, and by a verdict that names attackers."""
    lattices = quiet.where("dataset", "lattice")
    return [
        Claim(
            "p < 0.05 in 3 to 7 per cent of quiet collections",
            0.03 <= quiet.suspicious <= 0.07,
            f"{per_cent(quiet.suspicious)}; of lattices {per_cent(lattices.suspicious)}",
        ),
        Claim(
            "no quiet collection has attackers named without doubt",
            quiet.named == 0,
            f"{quiet.named} of {len(quiet)}",
        ),
    ]


def _worst_case_claim(unseeable: Collections) -> Claim:
    """Where reports are those of honest users, the worst case is what counts."""
    held = unseeable.worst_case_holds
    return Claim(
        "the worst case holds the truth in at least 95 per cent under noise and imitation",
        held >= 0.95,
        "the estimates have no worst case" if np.isnan(held) else f"{held:.1%}",
    )


def _time_claims(collections: Collections) -> list[Claim]:
    """Seconds of the processor for one estimate."""
    seconds = collections.column("seconds")
    return [
        Claim(
            "an estimate takes at most 2 s of the processor on average, and 5 s at most",
            bool(seconds.mean() <= 2 and seconds.max() <= 5),
            f"{seconds.mean():.2f} s, at most {seconds.max():.2f} s",
        )
    ]
