"""Trials of several plans: few collections for all of them, more for those that may be taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from unpoison.planner.candidates import Candidate
from unpoison.planner.expectations import Expectations
from unpoison.planner.parallel import RunAll
from unpoison.planner.reference import SHAPES, hardest_attack
from unpoison.planner.setting import Setting
from unpoison.planner.simulated import Draw, Outcome, PredictedError, Situation

TRIALS_AT_ONCE = 4
"""Trials that are added at a time where a plan's error is largest: whole rounds on 2 or 4 cores."""
EXACT_ENOUGH = 0.125
"""Standard error, as a part of the predicted error, at which trials end: two of these are a
quarter."""

Advance = Callable[[int], None]


@dataclass(eq=False)
class PlanTrials:
    """Outcomes of the collections of several plans that were simulated so far.

    >>> from unpoison.planner.candidates import candidates
    >>> setting = Setting(5000, tolerate=0.1)
    >>> plan = candidates(1.0, 0.5, mechanism="k-rr", categories=["tea", "milk", "water"])[0]
    >>> trials = PlanTrials([Expectations.of(plan, setting)], setting)
    >>> trials.screen()
    >>> situation, error = trials.worst(plan)
    >>> situation.attack, error.trials
    ('reports of the rarer half of the categories', 1)
    """

    all_expectations: Sequence[Expectations]
    setting: Setting
    run_all: RunAll = map
    advance: Advance = lambda done: None
    outcomes: dict[tuple[Candidate, Situation], list[Outcome]] = field(default_factory=dict)

    def screen(self) -> None:
        """Try every plan on the attack that is hardest to find, once with each shape."""
        for figures in self.all_expectations:
            self._add_hardest(figures.candidate, 1)

    def complete(self, candidate: Candidate, hard_trials: int) -> None:
        """Try a plan so often on that attack, and once in every other situation."""
        tried = self._tried(candidate)
        situations = Situation.all_on(candidate.plan)
        self._add((candidate, situation) for situation in situations if situation not in tried)
        self._add_hardest(candidate, hard_trials - 1)

    def refine(self, candidate: Candidate, most_trials: int) -> None:
        """Try a plan where its error is largest, until that is known well enough."""
        while not self.is_refined(candidate, most_trials):
            situation, _ = self.worst(candidate)
            self._add([(candidate, situation)] * TRIALS_AT_ONCE)

    def is_refined(self, candidate: Candidate, most_trials: int) -> bool:
        """Whether a plan's largest error is known well enough, or was tried often enough."""
        error = self.worst(candidate)[1]
        exact = error.relative <= EXACT_ENOUGH and error.trials >= TRIALS_AT_ONCE
        return exact or error.trials >= most_trials * self.setting.trials

    def worst(self, candidate: Candidate) -> tuple[Situation, PredictedError]:
        """The situation in which a plan has its largest error, and that error."""
        situation = self._by_error(candidate)[0]
        return situation, self._error(candidate, situation)

    def interval_width(self, candidate: Candidate, situation: Situation) -> float:
        """The average width of the 95 % interval."""
        outcomes = self.outcomes[candidate, situation]
        return float(np.mean([outcome.interval_width for outcome in outcomes]))

    def is_complete(self, candidate: Candidate) -> bool:
        """Whether a plan was tried in every situation."""
        return set(self._tried(candidate)) == set(Situation.all_on(candidate.plan))

    def _add_hardest(self, candidate: Candidate, number: int) -> None:
        """So many collections more of every shape under the hardest attack."""
        attack = hardest_attack(candidate.plan)
        self._add((candidate, Situation(attack, shape)) for shape in list(SHAPES) * number)

    def _tried(self, candidate: Candidate) -> list[Situation]:
        return [situation for tried, situation in self.outcomes if tried == candidate]

    def _by_error(self, candidate: Candidate) -> list[Situation]:
        """The situations that a plan was tried in, from the largest error on."""
        return sorted(
            self._tried(candidate),
            key=lambda situation: -self._error(candidate, situation).error,
        )

    def _error(self, candidate: Candidate, situation: Situation) -> PredictedError:
        outcomes = self.outcomes[candidate, situation]
        attainable = next(
            figures.attainable[situation]
            for figures in self.all_expectations
            if figures.candidate == candidate
        )
        return PredictedError.of([outcome.squared_error for outcome in outcomes], attainable)

    def _add(self, wanted: Iterable[tuple[Candidate, Situation]]) -> None:
        """Simulate one more collection, times the setting's trials, of each that is named."""
        named = [pair for pair in wanted for _ in range(self.setting.trials)]
        numbers = {pair: len(self.outcomes.get(pair, [])) for pair in named}
        draws = []
        for candidate, situation in named:
            number = numbers[candidate, situation]
            numbers[candidate, situation] += 1
            draws.append(Draw(candidate.plan, situation, self.setting, number))
        for pair, outcome in zip(named, self.run_all(Draw.run, draws), strict=True):
            self.outcomes.setdefault(pair, []).append(outcome)
            self.advance(1)
