"""The diagnosis of a tier's clients, and the model of the poison that is left with it.

docs/method.md, Broken clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.filters.client_faults import constants
from unpoison.filters.client_faults.broken_mechanism import BrokenMechanism
from unpoison.filters.client_faults.comparison import (
    BrokenFit,
    best_broken_fit,
    neighbouring_fits,
    refined,
)
from unpoison.filters.client_faults.finding import ClientFault
from unpoison.filters.client_faults.hypotheses import Hypotheses
from unpoison.filters.client_faults.rounded_groups import RoundedGroups
from unpoison.filters.joint import ModelChoice, ModelSearch, PoisonModel, choose_model, fit
from unpoison.filters.joint import constants as joint_constants
from unpoison.summary import Summary
from unpoison.types import FloatArray

ATTACK_POSSIBLE = "An attack would explain the reports as well; the interval allows for it."


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The faults of a tier's clients, and the choice of a model with their mechanisms.

    `alternative` is the choice without a fault, or with one, if that may be true as well.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(20_000), rng=rng, fault="rounding:1", faulty_fraction=1)
    >>> diagnosis = diagnose(run.summary, [0, 1])
    >>> diagnosis.faults[0].detail["spacing"], diagnosis.choice.attacker_share
    (0.1, 0.0)
    """

    choice: ModelChoice
    faults: tuple[ClientFault, ...] = ()
    alternative: ModelChoice | None = None
    instead_of_attack: bool = False
    """Whether a fault explains reports that nobody and healthy clients do not."""

    @property
    def doubtful(self) -> bool:
        """Whether a fault is not known well enough, or is found together with an attack."""
        attacked = bool(self.faults) and self.choice.attacker_share > 0
        unclear = self.alternative is not None or attacked
        return unclear or any(fault.doubt for fault in self.faults)

    @property
    def fault_possible(self) -> bool:
        """Whether an attack was chosen though a fault explains the reports nearly as well."""
        return self.alternative is not None and not self.instead_of_attack

    def accepted_shares(self) -> FloatArray:
        """The share of reports in each of the choice's groups that are not refused."""
        mechanisms = [buckets.mechanism for buckets in self.choice.counts.buckets]
        shares = [
            mechanism.accepted_share if isinstance(mechanism, BrokenMechanism) else 1.0
            for mechanism in mechanisms
        ]
        return np.array(shares)


def diagnose(summary: Summary, tier: Sequence[int]) -> Diagnosis:
    """Recognise broken clients of a tier, and choose a model of the poison that takes them in.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> diagnose(simulate(plan, rng.random(20_000), rng=rng).summary, [0, 1]).faults
    ()
    """
    rounded = RoundedGroups.of(summary, tier)
    direction, certain = rounded.direction() if rounded.groups else ("nearest", True)
    counts = rounded.counts(direction)
    faults = tuple(rounded.faults(direction, certain))
    choice = choose_model(counts)
    if choice.nobody.p_value > constants.TRIED_BELOW:
        return Diagnosis(choice, faults)
    return _with_other_clients(summary, choice, faults)


def _with_other_clients(
    summary: Summary, choice: ModelChoice, faults: tuple[ClientFault, ...]
) -> Diagnosis:
    """Try other clients than healthy ones, where these and no attack do not explain the reports."""
    counts, of_poison = choice.counts, _score_of_poison(choice)
    broken = best_broken_fit(counts, Hypotheses(summary, counts.groups).all, of_poison)
    if broken is None or not broken.is_significant(choice.nobody):
        return Diagnosis(choice, faults)
    broken = refined(broken)
    if not broken.explains:
        return Diagnosis(choice, faults)
    lead = of_poison - broken.score
    if lead < 0:
        close = lead > -joint_constants.CLOSE_SCORE
        return Diagnosis(choice, faults, alternative=_nobody_attacks(broken) if close else None)
    clear = lead > constants.LEAD_PER_BUCKET * counts.counts.shape[1]
    fault = broken.hypothesis.fault(
        broken.share, len(counts.groups), "" if clear else ATTACK_POSSIBLE
    )
    alternative = None if clear else choice
    return Diagnosis(_nobody_attacks(broken), (*faults, fault), alternative, True)


def _nobody_attacks(broken: BrokenFit) -> ModelChoice:
    """The choice of the fault alone: it explains the reports, so that no attack is looked for."""
    nobody, even = broken.fit_to_users, PoisonModel.even(*broken.counts.counts.shape)
    even_fit, factor = fit(broken.counts, even), broken.scatter.error_factor
    at_interval_ends = neighbouring_fits(broken)
    return ModelChoice(
        broken.counts, nobody, nobody, even_fit, at_interval_ends, error_factor=factor
    )


def _score_of_poison(choice: ModelChoice) -> float:
    """The score of the chosen model of the poison; infinite if it does not explain the counts."""
    return ModelSearch(choice.counts).score(choice.best) if choice.fits else np.inf
