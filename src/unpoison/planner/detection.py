"""The smallest share of attackers that would be detected, from expected counts."""

from __future__ import annotations

import math
from collections.abc import Callable

import scipy

from unpoison.estimate.significance import NOBODY_ATTACKS_LEVEL
from unpoison.filters.joint import Fit, PoisonModel, fit
from unpoison.plan import Plan
from unpoison.planner.expected import ExpectedCollection
from unpoison.planner.reference import Reference, attacks_on

POWER = 0.9
"""Chance with which the test must reject for a share of attackers to count as detectable: the
larger of the two that are usual when studies are planned, 0.8 and 0.9."""
SMALLEST_SHARE, LARGEST_SHARE = 1e-4, 0.5
"""The shares between which the detectable one is searched: from one user in 10,000, who hardly
moves a mean, to half of them, from where on nobody can tell who is honest."""
BISECTIONS = 8
"""Steps of the search: they leave a factor of 1.03 between its ends."""


def detectable_share(plan: Plan, reference: Reference) -> float:
    """The smallest γ that is noticed in 9 of 10 collections; NaN if not even half of users are.

    Attackers send the plainest poison of `attacks_on`. "Nobody attacks" is rejected at 5 %. The
    deviance of its fit is χ², and attackers make that non-central: by the deviance which the
    expected counts themselves have. The share at which that is enough is found by bisection.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> few, many = (detectable_share(plan, Reference("uniform", n)) for n in (10**4, 10**6))
    >>> bool(0 < many < few / 3)
    True
    """
    expected = ExpectedCollection(plan, reference)
    poison = expected.poison(next(iter(attacks_on(plan).values())))

    def fit_nobody(share: float) -> Fit:
        """The fit of "nobody attacks" to the expected counts with that share of attackers."""
        return fit(expected.mixed_counts(poison, share), PoisonModel.nobody(*poison.shape))

    quiet = fit_nobody(0.0)
    needed = _detected_noncentrality(max(quiet.degrees_of_freedom, 1.0)) + quiet.deviance
    return _smallest_share(lambda share: fit_nobody(share).deviance >= needed)


def _detected_noncentrality(degrees: float) -> float:
    """The non-centrality with which the χ² test rejects as often as POWER says."""
    limit = scipy.special.chdtri(degrees, NOBODY_ATTACKS_LEVEL)
    return float(
        scipy.optimize.brentq(
            lambda shift: 1 - scipy.special.chndtr(limit, degrees, shift) - POWER, 1e-6, 100 * limit
        )
    )


def _smallest_share(detected: Callable[[float], bool]) -> float:
    """Bisection on the logarithm of the share; NaN if even the largest is not detected."""
    if not detected(LARGEST_SHARE):
        return math.nan
    low, high = SMALLEST_SHARE, LARGEST_SHARE
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if detected(middle) else (middle, high)
    return high
