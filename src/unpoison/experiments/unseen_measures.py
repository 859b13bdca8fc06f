"""What is measured of many single collections, and their rows in tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unpoison.experiments.joint_claims import column
from unpoison.experiments.panel import with_measures
from unpoison.types import BoolArray, FloatArray

HALF_WIDTH = 1.0
"""How far outside its interval the truth is if that is off by half its width more than it says."""


@dataclass(frozen=True, eq=False)
class Collections:
    """Rows of single collections, all of one method.

    >>> rows = {"covered": [1.0, 0.0], "doubt": [0.0, 0.0], "kind": ["point", "noise"]}
    >>> collections = Collections(pa.table(rows))
    >>> collections.covered, collections.where("kind", "noise").silently_wrong
    (0.5, 1.0)
    """

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def where(self, name: str, *values: str) -> Collections:
        """Those that have one of these values in a column."""
        return Collections(self.table.filter(pc.is_in(self.table[name], pa.array(values))))

    def column(self, name: str) -> FloatArray:
        """A column as an array."""
        return column(with_measures(self.table), name)

    @property
    def covered(self) -> float:
        """The share whose interval has the truth in it."""
        return float(self.column("covered").mean())

    @property
    def doubted(self) -> float:
        """The share whose estimate says that the data cannot tell."""
        return float(self.column("doubt").mean())

    @property
    def silently_wrong(self) -> float:
        """The share whose truth is outside the interval, with no doubt."""
        return float(self._silent.mean())

    @property
    def far_off(self) -> float:
        """The share of which that is so by more than half the width of the interval."""
        return float((self._silent & (self.column("outside") > HALF_WIDTH)).mean())

    @property
    def _silent(self) -> BoolArray:
        return np.asarray((self.column("covered") == 0) & (self.column("doubt") == 0))

    @property
    def suspicious(self) -> float:
        """The share with p < 0.05 for "nobody attacks"."""
        return float(self.column("suspicious").mean()) if len(self) else np.nan

    @property
    def named(self) -> int:
        """How many estimates name attackers without doubt."""
        attackers = self.column("byzantine_fraction") > 0
        return int((attackers & (self.column("doubt") == 0)).sum())

    @property
    def worst_case_holds(self) -> float:
        """The share whose worst case has the truth in it; NaN where there is no worst case."""
        return float(self.column("worst_case_holds").mean()) if len(self) else np.nan

    def over_floor(self, share: float) -> float:
        """The quantile of the squared error over the floor, one of them: some are infinite."""
        return float(np.quantile(self.column("over_floor"), share, method="higher"))

    def informed_over_floor(self, share: float) -> float:
        """The same quantile of someone who knows what attackers send; NaN where nobody can."""
        ratios = self.column("informed_over_floor")
        known = ratios[~np.isnan(ratios)]
        return float(np.quantile(known, share, method="higher")) if len(known) else np.nan

    def head(self, name: str) -> list[str]:
        """The head of a table of poisoned collections in slices."""
        measures = ["intervals cover", "doubt", "silently wrong", "… by half a width"]
        errors = ["mse/floor: median", "90 %", "95 %", "poison known: 90 %"]
        return [name, "collections", *measures, *errors, "worst case holds", "CPU"]

    def row(self, label: str) -> list[str]:
        """A slice of poisoned collections."""
        shares = (self.covered, self.doubted, self.silently_wrong, self.far_off)
        errors = [self.over_floor(share) for share in (0.5, 0.9, 0.95)]
        informed = self.informed_over_floor(0.9)
        return [
            *(label, str(len(self))),
            *(per_cent(share) for share in shares),
            *(f"{error:.3g}" for error in errors),
            "–" if np.isnan(informed) else f"{informed:.3g}",
            *(per_cent(self.worst_case_holds), f"{self.column('seconds').mean():.2f} s"),
        ]

    def quiet_head(self, name: str) -> list[str]:
        """The head of a table of quiet collections in slices."""
        measures = ["intervals cover", "doubt", "p < 0.05", "attackers named without doubt"]
        return [name, "collections", *measures, "mse/floor: median", "CPU"]

    def quiet_row(self, label: str) -> list[str]:
        """A slice of quiet collections."""
        shares = (self.covered, self.doubted, self.suspicious)
        return [
            *(label, str(len(self))),
            *(per_cent(share) for share in shares),
            *(str(self.named), f"{self.over_floor(0.5):.3g}"),
            f"{self.column('seconds').mean():.2f} s",
        ]


def per_cent(share: float) -> str:
    """A share in words; a dash where there is none.

    >>> per_cent(0.25), per_cent(np.nan)
    ('25.0%', '–')
    """
    return "–" if np.isnan(share) else f"{share:.1%}"
