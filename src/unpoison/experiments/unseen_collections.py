"""Collections drawn at random: any shape, size, budget, number of groups, mechanism and attack.

What is drawn depends on SEED and on the number of a collection alone, so that the collections are
fixed before anybody has seen one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.estimate.methods import estimates
from unpoison.estimate.options import FilterOptions
from unpoison.experiments.cell import COLLECTION, Cell
from unpoison.protocols.joint import JOINT
from unpoison.simulation import Population, Simulation, simulate
from unpoison.simulation.informed_fit import informed_mean
from unpoison.simulation.trial import GROUPED, compare_with_truth

SEED = 20_150
"""Chosen before any collection was drawn, and never changed."""
SHAPES = ("smooth", "spikes", "lattice", "ends", "taxi", "retirement")
MECHANISMS = ("piecewise", "square-wave", "piecewise-integer", "square-wave-integer")
USERS, QUICK_USERS = (5_000, 1_000_000), (5_000, 20_000)
"""From what a small product has to what a large one samples; quick ones take a second each."""
BUDGETS, GROUPS, GAMMAS = (0.25, 8.0), (2, 6), (0.005, 0.45)
"""ε from strict to what large deployments use; γ from what hardly moves a mean to nearly half."""
NOBODY = "none"
NEAR_ENDS = (0.5, 0.9)
"""Where ranges of poison begin, on the way from the middle of the report domain to its end: the
paper's begin at 1/2 and 3/4, or at the honest mean."""
SCATTER, SHARES_TO_ASSUME = 0.01, 20
"""How much larger than γ the share of attackers in a group may well be, and into how many steps of
5 % the shares are divided that are assumed."""
MOST_UNEVEN = 0.95
"""The largest share of attackers that the weights of an uneven attack may give to a group."""

EPSILON_SLICES = {"1/4 to 1/2": 0.5, "1/2 to 1": 1.0, "1 to 2": 2.0, "2 to 4": 4.0, "4 to 8": 8.0}
"""The upper end of every slice by ε, each twice the one before, by its name."""
USER_SLICES = {"5,000 to 20,000": 20_000, "to 100,000": 100_000, "to 10^6": 1_000_000}
"""The upper end of every slice by users: about as many collections in each."""


@dataclass(frozen=True)
class UnseenCell(Cell):
    """One collection, which the joint filter estimates; the time is that of the processor.

    `kind` is the kind of attack.

    >>> cell = drawn_cells(1, poisoned=False, quick=True)[0]
    >>> cell.attack, [row["method"] for row in cell.run()]
    ('none', ['joint'])
    """

    kind: str = NOBODY

    def run(self) -> list[dict[str, Any]]:
        """A row for every trial, with the fields of the cell and the slices it belongs to."""
        sample = self._sample()
        plan, population = self._plan(sample), Population.of(sample.values)
        rows, informed = [], []
        rng = np.random.default_rng(self._seed(*COLLECTION))
        for trial, stream in enumerate(rng.spawn(self.trials)):
            run = simulate(plan, population, self.attack, self.gamma, stream)
            started = time.process_time()
            answer = estimates(run.summary, [JOINT], self.options)[JOINT]
            seconds = time.process_time() - started
            rows.append(compare_with_truth(trial, GROUPED, run, run, answer, seconds))
            informed.append(self._informed_over_floor(run, population))
        slices = {
            "epsilon_slice": slice_of(self.epsilon, EPSILON_SLICES),
            "users_slice": slice_of(self.users, USER_SLICES),
        }
        return [
            {**row, **slices, "informed_over_floor": ratio}
            for row, ratio in zip(self._rows(rows, plan), informed, strict=True)
        ]

    def _informed_over_floor(self, run: Simulation, population: Population) -> float:
        """The squared error over the floor of someone who knows what attackers send.

        NaN where nobody attacks, and where attackers send what honest users could.
        """
        if self.kind == NOBODY or self.kind in UNSEEABLE:
            return math.nan
        error = informed_mean(run, population, self.attack) - run.truth
        # The floor is zero where all users have one value: any error is then infinitely larger.
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.divide(error**2, run.floor))


def slice_of(value: float, ends: Mapping[str, float]) -> str:
    """The name of the slice that a number is in.

    >>> slice_of(3.0, EPSILON_SLICES)
    '2 to 4'
    """
    return next(name for name, end in ends.items() if value <= end)


def drawn_cells(count: int, poisoned: bool, quick: bool) -> list[UnseenCell]:
    """The first collections, of which kinds of attacks take turns; all else is drawn.

    >>> few, more = (drawn_cells(count, poisoned=True, quick=False) for count in (2, 3))
    >>> few == more[:2], [cell.kind for cell in more]
    (True, ['uniform', 'from the mean', 'point'])
    """
    return [_drawn_cell(number, poisoned, quick) for number in range(count)]


def _drawn_cell(number: int, poisoned: bool, quick: bool) -> UnseenCell:
    # Quick runs have collections of their own: looking at them says nothing about the others.
    rng = np.random.default_rng([SEED, number, int(poisoned), int(quick)])
    epsilon = round(_logarithmic(rng, *BUDGETS), 2)
    groups = int(rng.integers(GROUPS[0], GROUPS[1] + 1))
    gamma = round(_logarithmic(rng, *GAMMAS), 4) if poisoned else 0.0
    kind = list(ATTACKS)[number % len(ATTACKS)] if poisoned else NOBODY
    return UnseenCell(
        dataset=str(rng.choice(SHAPES)),
        users=round(_logarithmic(rng, *(QUICK_USERS if quick else USERS))),
        mechanism=str(rng.choice(MECHANISMS)),
        epsilon=epsilon,
        # Exact, also in decimals: budgets are halved from group to group.
        min_epsilon=epsilon / 2 ** (groups - 1),
        attack=ATTACKS[kind](_Draw(rng, groups, gamma)) if poisoned else NOBODY,
        gamma=gamma,
        methods=(JOINT,),
        trials=1,
        fast=True,
        kind=kind,
        options=FilterOptions(attackers_at_most=_assumed(gamma) if kind in UNSEEABLE else None),
    )


def _assumed(gamma: float) -> float:
    """The share that attackers are assumed not to exceed: a round one above theirs in any group.

    >>> _assumed(0.12), _assumed(0.145)
    (0.15, 0.2)
    """
    return min(math.ceil((gamma + SCATTER) * SHARES_TO_ASSUME) / SHARES_TO_ASSUME, 0.5)


def _logarithmic(rng: np.random.Generator, low: float, high: float) -> float:
    """A number that is as likely in any two ranges of the same ratio."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


@dataclass(frozen=True)
class _Draw:
    """Parameters of attacks, drawn at random for a plan with so many groups."""

    rng: np.random.Generator
    groups: int
    gamma: float

    def position(self, fraction: float, left: bool) -> str:
        """A position so far on the way from the middle of the report domain to one of its ends."""
        share = 0.5 + (-fraction if left else fraction) / 2
        return f"L+{share:.3f}*(R-L)"

    def range(self) -> str:
        """A range on one side: from half way to the end, or farther out, up to the end."""
        left = bool(self.rng.random() < 0.5)
        near, far = self.position(self.rng.uniform(*NEAR_ENDS), left), self.position(1.0, left)
        return f"{far},{near}" if left else f"{near},{far}"

    def some_groups(self) -> str:
        """The numbers of some groups, not all."""
        size = int(self.rng.integers(1, self.groups))
        return ",".join(map(str, sorted(self.rng.choice(self.groups, size, replace=False))))

    def weights(self) -> str:
        """Weights around 1 that leave honest users in every group."""
        most = (MOST_UNEVEN - self.gamma) / (MOST_UNEVEN + self.gamma)
        weights = 1 + self.rng.uniform(-most, most, self.groups)
        return ",".join(f"{weight:.3f}" for weight in weights)

    def alike(self) -> str:
        """Any attack that is alike in all groups."""
        return ATTACKS[str(self.rng.choice(ALIKE))](self)


ATTACKS: dict[str, Callable[[_Draw], str]] = {
    "uniform": lambda draw: f"uniform:{draw.range()}",
    "from the mean": lambda draw: str(draw.rng.choice(["uniform:O,R", "uniform:L,O"])),
    "point": lambda draw: f"point:{draw.position(draw.rng.uniform(-1, 1), left=False)}",
    "gaussian": lambda draw: f"gaussian:{draw.range()}",
    "beta": lambda draw: f"beta:{draw.range()},{_shape(draw)},{_shape(draw)}",
    "triangular": lambda draw: f"triangular:{draw.range()}",
    "evasion": lambda draw: (
        f"evasion:{draw.rng.uniform(0.05, 0.5):.3f},"
        f"{draw.position(draw.rng.uniform(0, 1), left=True)},"
        f"{draw.position(draw.rng.uniform(*NEAR_ENDS), left=False)},R"
    ),
    "adaptive": lambda draw: f"adaptive:{draw.rng.integers(1, draw.groups)},{draw.range()}",
    "opposite": lambda draw: f"opposite:{draw.range()}",
    "some-groups": lambda draw: f"some-groups:{draw.some_groups()};{draw.alike()}",
    "fishing": lambda draw: f"fishing:{draw.some_groups()};{draw.alike()}",
    "uneven": lambda draw: f"uneven:{draw.weights()};{draw.alike()}",
    "noise": lambda draw: "noise",
    "input": lambda draw: f"input:{draw.rng.uniform(-1, 1):.3f}",
    "imitator": lambda draw: (
        f"imitator:{draw.rng.choice(['up', 'down'])},{draw.rng.choice([0, 0.5, 1])}"
    ),
}
"""How the parameters of every kind of attack are drawn."""
ALIKE: Sequence[str] = list(ATTACKS)[:7]
"""Kinds that are alike in all groups, and that others may take."""
UNSEEABLE = ("noise", "input", "imitator")
"""Kinds whose reports honest users could have sent, or nearly so: there the worst case counts."""


def _shape(draw: _Draw) -> str:
    """A parameter of a Beta distribution."""
    return f"{_logarithmic(draw.rng, 0.5, 8.0):.3f}"
