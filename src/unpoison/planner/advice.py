"""Advice: plans compared in rounds, from figures without noise to many simulated collections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from unpoison.plan import Plan
from unpoison.planner.candidates import Candidate
from unpoison.planner.comparison import Comparison
from unpoison.planner.detection import detectable_share
from unpoison.planner.effort import Effort
from unpoison.planner.expectations import Expectations, best_of_each_budget
from unpoison.planner.expected import ExpectedCollection
from unpoison.planner.parallel import RunAll, runner
from unpoison.planner.prediction import Prediction
from unpoison.planner.reference import SHAPES, Reference, attacks_on
from unpoison.planner.setting import MOST_USERS, Setting
from unpoison.planner.simulated import Draw, PredictedError
from unpoison.planner.trials import Advance, PlanTrials

MOST_ROUNDS = 4
"""Numbers of users that are tried before giving up. It bounds the time: each takes as many
estimates as TRIALS_A_TRY says."""
LEAST_GROWTH = 1.25
"""The factor by which each try has at least more users: the search moves on, and what it finds is
no more exact than that."""
TRIALS_A_TRY = 4
"""Collections of each number of users: enough to see whether errors fall as they should."""


def compare(
    plans: Sequence[Candidate],
    setting: Setting,
    target_error: float | None = None,
    advance: Advance | None = None,
    workers: int = 1,
) -> Comparison:
    """Compare plans in rounds, and say how many users would be enough where none meets the target.

    First all plans by the errors that are attainable and by their worst case, which needs no
    simulation and leaves one for each ε0. Those are tried on the attack that is hardest to find,
    the best of them in every situation, and the one to recommend where its error is largest.
    `advance` is told of every simulated collection. With several `workers`, processes are started.

    >>> from unpoison.planner.candidates import candidates
    >>> plans = candidates(1.0, 0.5, mechanism="k-rr", categories=["tea", "milk", "water"])
    >>> comparison = compare(plans, Setting(2000, tolerate=0.25))
    >>> comparison.considered, comparison.recommended.complete
    (2, True)
    """
    Comparison((), setting, target_error)  # Refuses a bad target before the long work.
    effort = Effort.of(plans, setting)
    with runner(workers) as run_all:
        figures = list(run_all(partial(_expectations, setting), plans))
        # The last have the smallest ε0: with these the attainable errors are least.
        entrants = best_of_each_budget(figures)[-effort.entrants :]
        trials = PlanTrials(entrants, setting, run_all, advance or (lambda done: None))
        trials.screen()
        for candidate in _finalists(trials, target_error, effort.finalists):
            trials.complete(candidate, effort.hard_trials)
        comparison = _refined_comparison(trials, target_error, effort.most_trials)
        lines = _with_detection(comparison, run_all)
        comparison = replace(comparison, lines=lines, considered=len(plans))
        if target_error is None or comparison.met:
            return comparison
        needed = users_for(comparison.recommended, setting, target_error, run_all)
        return replace(comparison, needed_users=needed)


def _expectations(setting: Setting, candidate: Candidate) -> Expectations:
    return Expectations.of(candidate, setting)


def _finalists(trials: PlanTrials, target_error: float | None, number: int) -> list[Candidate]:
    """The best plan of the first round; then the cheapest that may meet a target, or the next."""
    errors = {
        figures.candidate: trials.worst(figures.candidate)[1].error
        for figures in trials.all_expectations
    }
    best, *next_best = sorted(errors, key=lambda candidate: errors[candidate])
    meeting = [candidate for candidate in next_best if errors[candidate] <= (target_error or 0.0)]
    cheapest = sorted(meeting, key=lambda candidate: candidate.reports_a_user)
    return list(dict.fromkeys([best, *cheapest, *next_best]))[:number]


def _refined_comparison(
    trials: PlanTrials, target_error: float | None, most_trials: int
) -> Comparison:
    """The comparison once the error of the plan that it recommends is known well enough."""
    while True:
        lines = tuple(_prediction(trials, figures) for figures in trials.all_expectations)
        comparison = Comparison(lines, trials.setting, target_error)
        recommended = comparison.recommended.candidate
        if trials.is_refined(recommended, most_trials):
            return comparison
        trials.refine(recommended, most_trials)


def _prediction(trials: PlanTrials, figures: Expectations) -> Prediction:
    candidate, users = figures.candidate, trials.setting.users
    situation, predicted = trials.worst(candidate)
    floor = Reference(situation.shape, users).unprotected_error(candidate.plan)
    return Prediction(
        candidate=candidate,
        situation=situation,
        predicted=predicted,
        complete=trials.is_complete(candidate),
        quiet_error=figures.quiet_error,
        price=predicted.error / math.sqrt(floor),
        detectable=math.nan,
        interval_width=trials.interval_width(candidate, situation),
        worst_case=figures.worst_case,
    )


def _with_detection(comparison: Comparison, run_all: RunAll) -> tuple[Prediction, ...]:
    """The lines with the share of attackers that each detects, in the worst shape."""
    plans = [line.candidate.plan for line in comparison.lines]
    shares = run_all(partial(_detectable, comparison.setting.users), plans)
    return tuple(
        replace(line, detectable=share)
        for line, share in zip(comparison.lines, shares, strict=True)
    )


def _detectable(users: int, plan: Plan) -> float:
    """The share of attackers that is detected among so many users of any shape; NaN if none is."""
    shares = [detectable_share(plan, Reference(shape, users)) for shape in SHAPES]
    return float(np.max(shares))


def users_for(
    line: Prediction,
    setting: Setting,
    target_error: float,
    run_all: RunAll = map,
) -> int | None:
    """The number of users that a plan needs to meet a target; None if 10⁹ are not enough.

    Errors fall with the root of the number of users at best; so that many are tried first, in the
    situation where the plan's error is largest.

    >>> from unpoison.planner.candidates import candidates
    >>> plans = candidates(1.0, 0.5, mechanism="k-rr", categories=["tea", "milk", "water"])
    >>> setting = Setting(2000, tolerate=0.1)
    >>> line = compare(plans, setting).recommended
    >>> users_for(line, setting, line.error / 2) >= 8000
    True
    """
    error, users = line.error, setting.users
    for _ in range(MOST_ROUNDS):
        users = _rounded(users * max((error / target_error) ** 2, LEAST_GROWTH))
        if users > MOST_USERS:
            return None
        error = _error_with(line, replace(setting, users=users), run_all)
        if error <= target_error:
            return users
    return None


def _error_with(line: Prediction, setting: Setting, run_all: RunAll) -> float:
    """The error of a plan with another number of users, in the situation that was the worst."""
    plan, situation = line.candidate.plan, line.situation
    draws = [Draw(plan, situation, setting, number) for number in range(TRIALS_A_TRY)]
    squared_errors = [outcome.squared_error for outcome in run_all(Draw.run, draws)]
    expected = ExpectedCollection(plan, Reference(situation.shape, setting.users))
    attack = attacks_on(plan)[situation.attack]
    attainable = expected.attainable_error(attack, setting.tolerate)
    return PredictedError.of(squared_errors, attainable).error


def _rounded(users: float) -> int:
    """Rounded up to two digits: predictions are not more exact."""
    step = int(10 ** max(math.floor(math.log10(users)) - 1, 0))
    return math.ceil(users / step) * step
