"""How many plans and collections to simulate, so that advice takes less than half a minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unpoison.planner.candidates import Candidate
from unpoison.planner.reference import SHAPES, attacks_on
from unpoison.planner.setting import Setting

SECONDS = 40.0
"""Seconds of the processor for all estimates: 20 s on two cores. Of 30 s that leaves 10, to start
processes, for what needs no simulation, and where cores share a processor."""
SECONDS_A_GROUP = 0.08
"""Seconds for each group of an estimate of 10,000 users at ε = 1, as measured."""
INFORMATION, POWER = 1e4, 0.25
"""Estimates take longer the more there is to see: from so much users·ε² on, about its fourth root.
At ε = 4 and with 10⁶ users that is six times as long."""
CHOICES = ((4, 2, 16), (4, 1, 16), (3, 1, 12), (2, 1, 8), (2, 1, 4))
"""Entrants, finalists and trials under the hardest attack, from the most work to the least. The
filter may fail in one of ten collections and have most of its error from these, so that fewer
plans come before fewer trials: 8 would miss all failures in two of five requests, 16 in one."""
FEWEST_MORE, MOST_TRIALS = 4, 24
"""Trials that must be left for where an error is largest, and how many there may be. With 24 that
agree with the attainable error the figure is known to an eighth."""


@dataclass(frozen=True)
class Effort:
    """Numbers of plans and trials. They follow from the setting, not from how fast this machine is.

    So the same request always gets the same advice. `entrants` are tried on the hardest attack, and
    the `finalists` among them in every situation: `hard_trials` times with each shape under the
    hardest attack, once under others, and up to `most_trials` times where the error is largest.

    >>> from unpoison.planner.candidates import candidates
    >>> Effort.of(candidates(1.0, low=0, high=1), Setting(10_000, tolerate=0.25))
    Effort(entrants=4, finalists=1, hard_trials=16, most_trials=24)
    >>> Effort.of(candidates(8.0, low=0, high=1), Setting(10**6, tolerate=0.25))
    Effort(entrants=2, finalists=1, hard_trials=4, most_trials=8)
    """

    entrants: int
    finalists: int
    hard_trials: int
    most_trials: int

    @classmethod
    def of(cls, plans: Sequence[Candidate], setting: Setting) -> Effort:
        """The first of CHOICES whose estimates fit into SECONDS, with the trials left over."""
        affordable = SECONDS / _seconds_an_estimate(plans, setting)
        other_situations = (len(attacks_on(plans[0].plan)) - 1) * len(SHAPES)
        for entrants, finalists, hard_trials in CHOICES:
            of_finalist = other_situations + (hard_trials - 1) * len(SHAPES)
            left = affordable - entrants * len(SHAPES) - finalists * of_finalist
            more = int(left / finalists)
            if more >= FEWEST_MORE:
                return cls(entrants, finalists, hard_trials, min(hard_trials + more, MOST_TRIALS))
        return cls(*CHOICES[-1], CHOICES[-1][-1] + FEWEST_MORE)


def _seconds_an_estimate(plans: Sequence[Candidate], setting: Setting) -> float:
    """The time of an estimate with as many groups as any plan has."""
    groups = max(len(candidate.plan.groups) for candidate in plans)
    information = setting.users * plans[0].plan.epsilon ** 2 / INFORMATION
    return float(SECONDS_A_GROUP * groups * max(information, 1.0) ** POWER)
