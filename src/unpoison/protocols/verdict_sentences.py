"""Sentences that the verdicts of the joint filter share, of few categories and of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unpoison.estimate.estimate import WorstCase
from unpoison.estimate.wording import list_names


def outvoted(share: str) -> str:
    """The sentence where attackers are the majority of a group.

    >>> outvoted("60.0 %").partition(".0 % ")[2][:28]
    'of users seem to be attacker'
    """
    return (
        f"{share} of users seem to be attackers. No method can tell the honest ones apart then: do "
        "not use the answer."
    )


def of_some_groups(attacked: Sequence[int], groups: int) -> str:
    """The groups whose users attack, where others do not; nothing if all do.

    >>> of_some_groups([0, 2], groups=4), of_some_groups([0, 1], groups=2)
    (' of groups 0 and 2 alone', '')
    """
    if len(attacked) == groups:
        return ""
    names = list_names(tuple(str(group) for group in attacked))
    return f" of group{'s' if len(attacked) > 1 else ''} {names} alone"


def worst_case(case: WorstCase, range_told: str) -> str:
    """The sentence about what holds whatever attackers send, or that more attack than assumed.

    >>> case = WorstCase(0.1, low=None, high=None, least_attackers=0.2)
    >>> worst_case(case, "").partition(":")[0]
    'At least 20.0 % of users attack'
    """
    share = f"{100 * case.attackers_at_most:.3g} %"
    if not case.possible:
        return (
            f"At least {100 * case.least_attackers:.1f} % of users attack: no honest users explain "
            f"the reports with at most {share} attackers, as was assumed."
        )
    return (
        f"Whatever attackers send, as long as they are at most {share} of each group, {range_told}."
    )


def frequencies_off_by(case: WorstCase, frequencies: Mapping[str, float]) -> str:
    """How far any frequency may be off in the worst case; nothing where nothing is possible.

    >>> case = WorstCase(0.1, low={"tea": 0.25}, high={"tea": 0.75}, least_attackers=0.0)
    >>> frequencies_off_by(case, {"tea": 0.5})
    'no frequency is off by more than 25.0 percentage points'
    """
    distances = [
        max(high - frequencies[name], frequencies[name] - low)
        for name, (low, high) in case.frequency_ranges.items()
    ]
    if not distances:
        return ""
    return f"no frequency is off by more than {100 * max(distances):.1f} percentage points"
