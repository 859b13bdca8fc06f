"""Which model of the poison the data choose, and which others they cannot rule out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import Poison
from unpoison.filters.joint.solver import Fit, fit
from unpoison.filters.joint.support import columns, score, starts, tidied

FITS = 1e-3
CLOSE = 6.0
LEVEL = 0.05
MOST_ATTACKERS = 0.5


@dataclass(frozen=True, eq=False)
class Choice:
    """The model that was chosen, whether it fits, and others that explain the counts as well.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> choice = choose(JointCounts.of(run.summary, range(4)))
    >>> choice.best.model.kind, choice.fits, len(choice.others)
    ('alike', True, 0)
    """

    best: Fit
    nobody: Fit
    others: tuple[Fit, ...]
    """What could be instead; if nothing fits, all that was tried with attackers in the minority."""

    @property
    def fits(self) -> bool:
        """Whether the counts could come from the model at all."""
        return self.best.p_value > FITS


def choose(counts: JointCounts) -> Choice:
    """The model with the best score of those that fit the counts.

    Simple explanations are tried first: nobody attacks, or noise over the whole domain, or the same
    poison in all groups. Only if none of these fits may every group have poison of its own.
    """
    groups, outputs = counts.counts.shape
    everywhere = np.ones(outputs, dtype=bool)
    nobody = fit(counts, Poison.nobody(groups, outputs))
    found = [nobody, fit(counts, Poison.even(groups, outputs))]
    found.append(tidied(counts, Poison.alike(everywhere, groups)))
    places = list(starts(counts))
    alike = {each.tobytes(): each for each in map(columns, places)}
    found += [tidied(counts, Poison.alike(each, groups)) for each in alike.values()]
    if not any(_possible(counts, each) for each in found):
        found += [tidied(counts, Poison.own(each)) for each in places]
    found = list({_name(each.model): each for each in found}.values())
    best = min(found, key=lambda each: _order(counts, each))
    if best.p_value > FITS:
        return Choice(best, nobody, _others(counts, best, found))
    tried = [each for each in found if share_of(counts, each) < MOST_ATTACKERS]
    return Choice(best, nobody, tuple(each for each in tried if each is not best))


def _name(model: Poison) -> tuple[str, bytes]:
    """Different beginnings often end in the same model."""
    return model.kind, model.places.tobytes()


def share_of(counts: JointCounts, found: Fit) -> float:
    """γ̂ over all users.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> bool(abs(share_of(counts, choose(counts).best) - 0.3) < 0.01)
    True
    """
    return float(counts.users @ found.shares / counts.users.sum())


def _possible(counts: JointCounts, found: Fit) -> bool:
    """Whether a model explains the counts with attackers in the minority."""
    return found.p_value > FITS and share_of(counts, found) < MOST_ATTACKERS


def _order(counts: JointCounts, found: Fit) -> tuple[int, float]:
    """Those that fit come first, by their score; then a minority; of the rest the least bad fit."""
    if _possible(counts, found):
        return 0, score(counts, found)
    minority = share_of(counts, found) < MOST_ATTACKERS
    return 1 if minority else 2, found.deviance - found.degrees


def _others(counts: JointCounts, best: Fit, found: list[Fit]) -> tuple[Fit, ...]:
    """Those that fit, with a close score, or significantly better with more parameters."""

    def plausible(each: Fit) -> bool:
        if each is best or not _possible(counts, each):
            return False
        more = each.model.parameters - best.model.parameters
        gain = best.deviance - each.deviance
        better = more > 0 and chi2.sf(gain, more) < LEVEL
        return better or score(counts, each) - score(counts, best) < CLOSE

    return tuple(each for each in found if plausible(each))
