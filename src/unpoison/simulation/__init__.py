"""Simulated collections: users, attackers, ground truth, and the oracle floor."""

from unpoison.simulation.ground_truth import Simulation
from unpoison.simulation.population import Population
from unpoison.simulation.simulate import simulate

__all__ = ["Population", "Simulation", "simulate"]
