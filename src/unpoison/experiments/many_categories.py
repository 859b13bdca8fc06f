"""The joint filter on many categories: collections drawn at random, half of them poisoned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unpoison.estimate.methods import estimate_summary
from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import COLLECTION, Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.panel import Panel
from unpoison.experiments.unseen_measures import Collections, per_cent
from unpoison.plan import Plan
from unpoison.protocols.joint import JOINT
from unpoison.simulation import Population, simulate
from unpoison.simulation.trial import GROUPED
from unpoison.types import BoolArray, FloatArray

SEED = 1_703
"""Chosen before any collection was drawn."""
CATEGORIES = (300, 1_000, 10_000)
"""From just beyond what is fitted together to more than a table of k-RR is good for."""
COUNT, QUICK_COUNT = 60, 4
"""Poisoned collections of each number of categories, and as many quiet ones."""
USERS, QUICK_USERS = (100_000, 1_000_000), (20_000, 50_000)
"""Fewer would say nothing of most of so many categories; quick ones are there to be quick."""
BUDGETS = (1.0, 2.0, 4.0)
"""ε from where one category in a hundred can be seen to what large deployments use."""
GAMMAS = (0.02, 0.3)
"""The least and the largest share of attackers, of which any ratio is as likely."""
TARGETS = (1, 10, 100)
"""How many categories attackers push."""
STEEPNESS = (0.8, 1.5)
"""Exponents of Zipf's law, by which frequencies fall: from words to products."""
MOST_FREQUENT = 50
"""Categories whose intervals are looked at: those that anybody asks about."""
VISIBLE_DEVIATIONS = 4.0
"""Standard deviations of poison from which on a category is to be named."""
POISONED, QUIET = "poisoned", "quiet"


@dataclass(frozen=True)
class CategoriesCell(Cell):
    """One collection with so many categories, of which attackers push some.

    >>> cell = drawn_cells(quick=True)[0]
    >>> cell.kind, cell.categories, cell.attack.startswith("some-groups:")
    ('poisoned', 300, True)
    """

    categories: int = 0
    targets: int = 0
    steepness: float = 1.0
    kind: str = POISONED

    def run(self) -> list[dict[str, Any]]:
        """One row: the error over the floor, what was named, and which intervals cover."""
        names = [str(number) for number in range(self.categories)]
        plan = Plan.new(self.mechanism, self.epsilon, categories=names)
        rng = np.random.default_rng(self._seed(*COLLECTION, "categories", "steepness"))
        weights = 1 / np.arange(1, self.categories + 1) ** self.steepness
        values = np.repeat(names, rng.multinomial(self.users, weights / weights.sum()))
        run = simulate(plan, Population.of(values), self.attack, self.gamma, rng)
        started = time.process_time()
        answer = estimate_summary(run.summary, JOINT, post_processing="none")
        seconds = time.process_time() - started
        truth = np.array(list((run.frequencies or {}).values()))
        estimate = np.array(list((answer.frequencies or {}).values()))
        intervals = np.array(list(answer.fit["frequency_intervals"].values()))
        noise = _Noise.of(plan, run.summary.reports.astype(np.float64))
        floor = noise.oracle_error(truth, 1 - self.gamma)
        top = np.argsort(-truth)[:MOST_FREQUENT]
        low, high = intervals[top].T
        named = set(answer.byzantine.categories or ())
        pushed = set(self.attack.rpartition("targets:")[2].split(",")) if self.targets else set()
        return [
            {
                **self._columns(),
                "method": JOINT,
                "collection": GROUPED,
                "trial": 0,
                "floor": floor,
                "over_floor": float(((estimate - truth) ** 2).mean() / floor),
                "covered": float(((low <= truth[top]) & (truth[top] <= high)).mean()),
                "located": len(pushed & named) / len(pushed) if pushed else float("nan"),
                "falsely_named": float(len(named - pushed)),
                "visible": float(self._visible(noise)),
                "nobody_attacks_p_value": answer.fit["nobody_attacks_p_value"],
                "seconds": seconds,
            }
        ]

    def _visible(self, noise: _Noise) -> bool:
        """Whether each category that is pushed is lifted by enough to be seen among the noise."""
        if not self.targets:
            return False
        attacked = np.isin(np.arange(len(noise.signal)), self._attacked_groups(len(noise.signal)))
        return self.gamma / self.targets >= VISIBLE_DEVIATIONS * noise.poison_deviation(attacked)

    def _attacked_groups(self, groups: int) -> list[int]:
        if not self.attack.startswith("some-groups"):
            return list(range(groups))
        return [int(group) for group in self.attack.partition(":")[2].partition(";")[0].split(",")]


@dataclass(frozen=True, eq=False)
class _Noise:
    """What reports of k-RR tell of rare categories: baselines, signals and numbers of reports."""

    baseline: FloatArray
    signal: FloatArray
    reports: FloatArray

    @classmethod
    def of(cls, plan: Plan, reports: FloatArray) -> _Noise:
        pairs = np.array(
            [
                mechanism.cell_probabilities(np.zeros(1), mechanism.grid())[0, :2]
                for mechanism in plan.group_mechanisms
            ]
        )
        return cls(pairs[:, 1], pairs[:, 0] - pairs[:, 1], reports)

    def oracle_error(self, frequencies: FloatArray, honest: float) -> float:
        """The squared error of a frequency if all attackers are known, averaged over categories."""
        shares = self.baseline[:, None] + self.signal[:, None] * frequencies
        information = (honest * self.reports * self.signal**2) @ (1 / shares)
        return float((1 / information).mean())

    def poison_deviation(self, attacked: BoolArray) -> float:
        """The standard deviation of a rare category's poison in the attacked groups."""
        weight = self.reports / self.baseline
        lost = (attacked * weight @ self.signal) ** 2 / (weight @ self.signal**2)
        return float(1 / np.sqrt(attacked @ weight - lost))


def drawn_cells(quick: bool) -> list[CategoriesCell]:
    """The collections: what is drawn depends on SEED and a collection's number alone.

    >>> len(drawn_cells(quick=False))
    360
    """
    count = QUICK_COUNT if quick else COUNT
    return [
        _drawn_cell(number, categories, kind, quick)
        for kind in (POISONED, QUIET)
        for categories in CATEGORIES
        for number in range(count)
    ]


def _drawn_cell(number: int, categories: int, kind: str, quick: bool) -> CategoriesCell:
    rng = np.random.default_rng([SEED, number, categories, int(kind == QUIET), int(quick)])
    low, high = np.log(QUICK_USERS if quick else USERS)
    gamma = float(np.round(np.exp(rng.uniform(*np.log(GAMMAS))), 4))
    targets = int(rng.choice(TARGETS))
    chosen = ",".join(map(str, rng.choice(categories, targets, replace=False)))
    groups = ",".join(map(str, np.flatnonzero(rng.random(4) < 0.5))) or "0"
    attack = f"targets:{chosen}" if rng.random() < 0.5 else f"some-groups:{groups};targets:{chosen}"
    poisoned = kind == POISONED
    return CategoriesCell(
        dataset="zipf",
        users=round(float(np.exp(rng.uniform(low, high)))),
        mechanism="k-rr-integer",
        epsilon=float(rng.choice(BUDGETS)),
        attack=attack if poisoned else "none",
        gamma=gamma if poisoned else 0.0,
        methods=(JOINT,),
        trials=1,
        categories=categories,
        targets=targets if poisoned else 0,
        steepness=float(np.round(rng.uniform(*STEEPNESS), 2)),
        kind=kind,
    )


@experiments.register("many-categories", order=17)
class ManyCategoriesFigure(Experiment):
    """Collections of 300, 1,000 and 10,000 categories.

    >>> len(ManyCategoriesFigure().cells(quick=True))
    24
    """

    title = "The joint filter on hundreds and thousands of categories"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """The poisoned collections, then the quiet ones."""
        return list(drawn_cells(quick))

    def panels(self, quick: bool) -> list[Panel]:
        """Errors and intervals against the number of categories."""
        return [
            Panel(
                title, measure, {"kind": POISONED}, "categories", logarithmic=errors, median=errors
            )
            for title, measure, errors in (
                ("median error", "over_floor", True),
                ("intervals of the 50 most frequent", "covered", False),
            )
        ]

    def tables(self, table: pa.Table, quick: bool) -> dict[str, list[list[str]]]:
        """A row for each number of categories, poisoned and quiet."""
        return {"Many categories": [HEAD, *_rows(Collections(table))]}

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """The aims: accuracy, what is named, intervals, false alarms, the time."""
        everything = Collections(table)
        poisoned, quiet = everything.where("kind", POISONED), everything.where("kind", QUIET)
        errors = poisoned.column("over_floor")
        middle, most = np.quantile(errors, [0.5, 0.9])
        visible = poisoned.column("located")[poisoned.column("visible") > 0]
        false = float(poisoned.column("falsely_named").mean())
        covered = float(everything.column("covered").mean())
        alarms = float((quiet.column("falsely_named") > 0).mean())
        slowest = float(everything.column("seconds").max())
        return [
            Claim(
                "the squared error over the oracle's is at most 1.5 in the median, 3 in 90 %",
                bool(middle <= 1.5 and most <= 3),
                f"{middle:.3g}, {most:.3g}",
            ),
            Claim(
                "of categories pushed by at least 4 standard deviations 95 % are named",
                float(visible.mean()) >= 0.95,
                f"{visible.mean():.1%} in {len(visible)} collections",
            ),
            Claim(
                "at most one category a collection is named falsely",
                false <= 1,
                f"{false:.3g} on average",
            ),
            Claim(
                "intervals of the 50 most frequent cover in at least 93 %",
                covered >= 0.93,
                f"{covered:.1%}",
            ),
            Claim(
                "at least 95 % of quiet collections name nobody",
                alarms <= 0.05,
                f"{1 - alarms:.1%} of {len(quiet)}",
            ),
            Claim(
                "an estimate takes at most 10 s of the processor",
                slowest <= 10,
                f"at most {slowest:.2f} s",
            ),
        ]


HEAD = [
    "categories",
    "collections",
    "mse/floor: median",
    "90 %",
    "named of the pushed",
    "falsely named",
    "50 most frequent: intervals cover",
    "p < 0.05",
    "CPU",
]


def _rows(collections: Collections) -> Iterator[list[str]]:
    for kind in (POISONED, QUIET):
        for categories in CATEGORIES:
            of_kind = collections.where("kind", kind)
            chosen = pc.equal(of_kind.table["categories"], categories)
            part = Collections(of_kind.table.filter(chosen))
            if len(part):
                yield _row(f"{categories:,}, {kind}", part)


def _row(label: str, part: Collections) -> list[str]:
    errors, located = part.column("over_floor"), part.column("located")
    suspicious = (part.column("nobody_attacks_p_value") < 0.05).mean()
    return [
        label,
        f"{len(part)}",
        f"{np.median(errors):.3g}",
        f"{np.quantile(errors, 0.9):.3g}",
        "–" if np.isnan(located).all() else per_cent(float(np.nanmean(located))),
        f"{part.column('falsely_named').mean():.3g}",
        per_cent(float(part.column("covered").mean())),
        per_cent(float(suspicious)),
        f"{part.column('seconds').mean():.2f} s",
    ]
