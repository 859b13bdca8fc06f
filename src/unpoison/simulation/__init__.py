"""Simulated collections: users, attackers, ground truth, the oracle floor, trials of methods."""

from unpoison.simulation.ground_truth import Simulation
from unpoison.simulation.oracle import ORACLE, oracle_estimate
from unpoison.simulation.population import Population
from unpoison.simulation.scores import Score, score
from unpoison.simulation.simulate import simulate
from unpoison.simulation.trial import Trial
from unpoison.simulation.trials import rivals_of, run_trials

__all__ = [
    "ORACLE",
    "Population",
    "Score",
    "Simulation",
    "Trial",
    "oracle_estimate",
    "rivals_of",
    "run_trials",
    "score",
    "simulate",
]
