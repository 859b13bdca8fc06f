"""A million taxi rides, a quarter of the meters under one attacker's control."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from unpoison.datasets import Taxi
from unpoison.demo import say
from unpoison.estimate.methods import estimates
from unpoison.output.estimate_plot import draw_estimate
from unpoison.output.figure import save_figure
from unpoison.output.progress import progress
from unpoison.output.simulation_text import print_scores
from unpoison.plan import Plan
from unpoison.simulation import run_trials, score

USERS = 1_000_000
"""About as many as the paper's Taxi dataset has."""
EPSILON = 1.0
"""The middle one of the paper's budgets."""
BYZANTINE_FRACTION = 0.25
"""The paper's share of attackers."""
TRIALS = 3
"""Collections that errors are averaged over: the fewest that show whether an error is luck."""
ATTACK = "uniform:3C/4,C"
"""The first of the paper's four ranges of poison."""
METHODS = ("ostrich", "trimming", "emf", "emf-star", "cemf-star", "joint")
PICTURE = Path("demo") / "fit.png"
EXPLANATION = """
Ostrich averages everything. Trimming drops the upper half. EMF, EMF* and CEMF* estimate the
attackers' share and values group by group and take them out; joint does it for all groups at
once. mse/floor: mean squared error over {trials} collections, divided by what a linear estimator
would reach that knows who attacks."""


def main() -> None:
    """Simulate, estimate by every method, print beside the truth, draw."""
    started = time.perf_counter()
    rng = np.random.default_rng(2023)
    sample = Taxi().draw(USERS, rng)
    plan = Plan.new(epsilon=EPSILON, low=sample.low, high=sample.high)
    say(f"{USERS:,} taxi meters report when a ride began, in seconds, under ε = {EPSILON:g}.")
    say(f"({sample.source})")
    say(f"{BYZANTINE_FRACTION:.0%} of them collude and send values near the upper end instead.\n")
    with progress("Simulating and estimating", 2 * USERS * TRIALS) as advance:
        rows, run = run_trials(
            plan,
            sample.values,
            ATTACK,
            BYZANTINE_FRACTION,
            METHODS,
            trials=TRIALS,
            rng=rng,
            advance=advance,
        )
    say(f"True mean of the honest meters: {run.truth:,.0f} s\n")
    print_scores(score(rows))
    answer = estimates(run.summary, ["joint"])["joint"]
    PICTURE.parent.mkdir(exist_ok=True)
    save_figure(draw_estimate(answer, run), PICTURE)
    say(f"\nVerdict of joint: {answer.verdict}")
    say(EXPLANATION.format(trials=TRIALS))
    say(f"\nPicture: {PICTURE} ({time.perf_counter() - started:.0f} s in all)")
