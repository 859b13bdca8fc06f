"""Rules by which an estimate raises an alarm, for campaigns and for windows of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from unpoison.errors import InvalidParameter

MOST_MINUTES = 525_600
"""Minutes of a year: whoever waits longer for a report does not wait for an alarm."""
BOUNDS: dict[str, tuple[float, float]] = {
    "attackers_above": (0.0, 1.0),
    "p_below": (0.0, 1.0),
    "balance_below": (0.0, 1.0),
    "silent_minutes": (0.0, MOST_MINUTES),
}
"""The least and the most of each threshold; shares and p-values lie between 0 and 1."""


@dataclass(frozen=True)
class Observation:
    """What rules are judged by; None where nothing is known, which raises no alarm.

    >>> Observation(attacker_share=0.25).silent_minutes
    """

    attacker_share: float | None = None
    nobody_attacks_p_value: float | None = None
    doubt: bool | None = None
    balance_p_value: float | None = None
    silent_minutes: float | None = None


@dataclass(frozen=True)
class AlarmRules:
    """When to raise an alarm; a rule that is None, or False, is off.

    >>> rules = AlarmRules(attackers_above=0.05, doubt=True)
    >>> sorted(rules.active(Observation(attacker_share=0.25, doubt=False)))
    ['attackers_above']
    >>> AlarmRules(p_below=5)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: p_below must be between 0 and 1; received 5
    """

    attackers_above: float | None = None
    """The share of attackers is larger."""
    p_below: float | None = None
    """The p-value of "nobody attacks" is smaller."""
    doubt: bool = False
    """The estimate doubts itself."""
    balance_below: float | None = None
    """The p-value of "all groups report alike" is smaller."""
    silent_minutes: float | None = None
    """Nobody has reported for so long."""

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            threshold = getattr(self, name)
            if threshold is not None and not least <= threshold <= most:
                raise InvalidParameter(name, f"must be between {least:g} and {most:g}", threshold)

    @classmethod
    def from_thresholds(cls, thresholds: Mapping[str, float]) -> AlarmRules:
        """The rules that `thresholds` described."""
        return cls(**{**thresholds, "doubt": "doubt" in thresholds})  # type: ignore[arg-type]

    @property
    def thresholds(self) -> dict[str, float]:
        """The rules that are on, by name; doubt, which has no threshold, is 1."""
        return {
            name: float(threshold)
            for name, threshold in asdict(self).items()
            if threshold is not None and threshold is not False
        }

    def active(self, observation: Observation) -> set[str]:
        """The names of the rules that raise an alarm."""
        triggered = {
            "attackers_above": _above(observation.attacker_share, self.attackers_above),
            "p_below": _above(self.p_below, observation.nobody_attacks_p_value),
            "doubt": self.doubt and observation.doubt is True,
            "balance_below": _above(self.balance_below, observation.balance_p_value),
            "silent_minutes": _above(observation.silent_minutes, self.silent_minutes),
        }
        return {name for name, triggers in triggered.items() if triggers}


def _above(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one > other
