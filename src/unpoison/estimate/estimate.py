"""The Estimate: the answer with its evidence."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.estimate.distribution import Distribution
from unpoison.estimate.finding import NOT_SOUGHT
from unpoison.types import FloatArray

OF_NUMBERS = ("mean", "side", "distribution", "unit")
OF_CATEGORIES = ("frequencies", "categories")
"""Keys that the JSON of the other kind leaves out."""


@dataclass(frozen=True)
class Histogram:
    """Fractions of all reports of one group, bucket by bucket, in report units.

    Of categories each is a bucket, in the plan's order.

    >>> poison = Histogram(group=2, edges=(-4.0, 0.0, 4.0), fractions=(0.0, 0.25))
    >>> sum(poison.fractions)
    0.25
    """

    group: int
    edges: tuple[float, ...]
    fractions: tuple[float, ...]


@dataclass(frozen=True)
class Byzantine:
    """The attackers: γ̂, where their values are, and ŷ.

    Numbers have a `side`; categories are named.

    >>> attackers = Byzantine(fraction=0.25, side="right")
    >>> f"{attackers.fraction:.0%} of users, on the {attackers.side}"
    '25% of users, on the right'
    """

    fraction: float
    side: str = "none"
    histogram: Histogram | None = None
    categories: tuple[str, ...] | None = None
    interval: tuple[float, float] | None = None
    finding: str = NOT_SOUGHT
    """Whether attackers were found, ruled out beyond a small share, or neither."""

    @property
    def where(self) -> str:
        """The side, or the names of the categories."""
        if self.categories is None:
            return self.side
        return ", ".join(self.categories) or "none"


@dataclass(frozen=True)
class RangeAtShare:
    """The range of the mean with at most a share of attackers, and the limit of any method.

    No ε-LDP protocol can exclude a mean between `limit_low` and `limit_high`, if the values of
    users are at the ends of the range.

    >>> RangeAtShare(0.1, low=0.2, high=0.5, limit_low=0.25, limit_high=0.45).low
    0.2
    """

    attackers_at_most: float
    low: float
    high: float
    limit_low: float
    limit_high: float


@dataclass(frozen=True)
class WorstCase:
    """Range of honest means or frequencies if at most a share of each group attacks, in any way.

    `low` and `high` are the ends of the mean, or of each frequency by name; None where the reports
    need more attackers than that. `least_attackers` is the share that attack at least.

    >>> WorstCase(attackers_at_most=0.1, low=0.3, high=0.5, least_attackers=0.02).possible
    True
    """

    attackers_at_most: float
    low: float | dict[str, float] | None
    high: float | dict[str, float] | None
    least_attackers: float
    by_share: tuple[RangeAtShare, ...] = ()
    """The range for other shares, where that was asked for and so few explain the reports."""

    @property
    def possible(self) -> bool:
        """Whether the reports are possible with at most `attackers_at_most` attackers."""
        return self.low is not None

    @property
    def mean_range(self) -> tuple[float, float] | None:
        """The range of the mean; None for categories, and where nothing is possible."""
        if isinstance(self.low, dict) or isinstance(self.high, dict):
            return None
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def frequency_ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each frequency by name; empty for numbers, or if nothing is possible."""
        if not (isinstance(self.low, dict) and isinstance(self.high, dict)):
            return {}
        return {name: (low, self.high[name]) for name, low in self.low.items()}


@dataclass(frozen=True)
class Picture:
    """A group's reports in a few wide bins: observed, and what the fit says of them.

    >>> halves = {"edges": (-4.0, 0.0, 4.0), "observed": (0.375, 0.625)}
    >>> picture = Picture(**halves, honest=(0.375, 0.375), poison=(0.0, 0.25))
    >>> picture.honest[1] + picture.poison[1] == picture.observed[1]
    True
    """

    edges: tuple[float, ...]
    observed: tuple[float, ...]
    honest: tuple[float, ...]
    poison: tuple[float, ...]


@dataclass(frozen=True)
class GroupEstimate:
    """The estimate from one group: a mean in natural units, or unprocessed frequencies.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.2, np.random.default_rng(1))
    >>> [(group.epsilon, group.reports) for group in estimate(run.summary).groups]
    [(0.5, 1000), (0.25, 2000)]
    """

    group: int
    tier: int
    epsilon: float
    users: float
    reports: int
    mean: float
    weight: float
    byzantine_fraction: float
    iterations: int = 0
    converged: bool = True
    picture: Picture | None = None
    frequencies: dict[str, float] | None = None


@dataclass(frozen=True)
class TierEstimate:
    """The estimate from the users of one personal budget; tiers are combined by honest users.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1, min_epsilon=0.5, tiers=[{"epsilon": 0.25}])
    >>> values, budgets = np.full(2000, 0.3), np.repeat([1.0, 0.25], 1000)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1), budgets=budgets)
    >>> [tier.epsilon for tier in estimate(run.summary).tiers]
    [1.0, 0.25]
    """

    epsilon: float
    mean: float
    weight: float
    byzantine_fraction: float
    side: str = "none"
    frequencies: dict[str, float] | None = None
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Estimate:
    """An answer in natural units, how it was reached, and a sentence a person can act on.

    Of numbers it is the `mean`, with the `distribution` where that was asked for. Of categories it
    is their `frequencies` by name; they have no mean (NaN here, left out of JSON) and no sides.

    >>> estimate = Estimate("ostrich", 0.5, Byzantine(0.0, "none"), verdict="A plain average.")
    >>> Estimate.from_json(estimate.to_json()) == estimate
    True
    """

    method: str
    mean: float
    byzantine: Byzantine
    interval: tuple[float, float] | None = None
    groups: tuple[GroupEstimate, ...] = ()
    tiers: tuple[TierEstimate, ...] = ()
    fit: dict[str, Any] = field(default_factory=dict)
    converged: bool = True
    users: float = 0.0
    reports: int = 0
    invalid: int = 0
    verdict: str = ""
    frequencies: dict[str, float] | None = None
    distribution: Distribution | None = None
    worst_case: WorstCase | None = None
    unit: str | None = None
    """The plan's unit of values, for whoever shows the numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; of categories without means and sides."""
        keys = json.loads(json.dumps(asdict(self)))
        if self.distribution is not None:
            keys["distribution"] = self.distribution.to_dict()
        with_statistics = [keys, keys["byzantine"], *keys["groups"], *keys["tiers"]]
        for record in with_statistics:
            for key in OF_NUMBERS if self.frequencies is not None else OF_CATEGORIES:
                record.pop(key, None)
        return dict(keys)

    def to_json(self) -> str:
        """One JSON object on one line."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Estimate:
        """Read what `to_json` wrote."""
        try:
            keys = json.loads(text)
            return cls._from_dict(keys)
        except (ValueError, TypeError, KeyError, AttributeError) as fault:
            raise InvalidParameter("estimate", "must be an estimate's JSON", str(fault)) from None

    @classmethod
    def _from_dict(cls, keys: dict[str, Any]) -> Estimate:
        byzantine = _tuples(keys["byzantine"])
        if byzantine["histogram"] is not None:
            byzantine["histogram"] = Histogram(**_tuples(byzantine["histogram"]))
        distribution = keys.get("distribution")
        parsed = {
            "mean": keys.get("mean", math.nan),
            "byzantine": Byzantine(**byzantine),
            "interval": None if keys["interval"] is None else tuple(keys["interval"]),
            "worst_case": _worst_case(keys.get("worst_case")),
            "groups": tuple(_group(group) for group in keys["groups"]),
            "tiers": tuple(_tier(tier) for tier in keys["tiers"]),
            "distribution": None if distribution is None else Distribution.from_dict(distribution),
        }
        return cls(**{**keys, **parsed})


def _worst_case(keys: dict[str, Any] | None) -> WorstCase | None:
    if keys is None:
        return None
    by_share = tuple(RangeAtShare(**entry) for entry in keys["by_share"])
    return WorstCase(**{**keys, "by_share": by_share})


def _tuples(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in keys.items()}


def _group(keys: dict[str, Any]) -> GroupEstimate:
    picture = keys["picture"]
    parsed = {
        "mean": keys.get("mean", math.nan),
        "picture": None if picture is None else Picture(**_tuples(picture)),
    }
    return GroupEstimate(**{**keys, **parsed})


def _tier(keys: dict[str, Any]) -> TierEstimate:
    return TierEstimate(**{"mean": math.nan, **_tuples(keys)})


def numbers(array: FloatArray) -> tuple[float, ...]:
    """An array as a tuple of floats, for a frozen value.

    >>> numbers(np.array([1, 2]))
    (1.0, 2.0)
    """
    return tuple(np.asarray(array, dtype=np.float64).tolist())
