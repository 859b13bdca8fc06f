"""What an estimate says of attackers in one word: found, ruled out, or neither."""

from __future__ import annotations

ATTACKERS_FOUND, RULED_OUT, UNCLEAR, NOT_SOUGHT = "found", "ruled-out", "unclear", "not-sought"
FINDINGS = (ATTACKERS_FOUND, RULED_OUT, UNCLEAR, NOT_SOUGHT)
SMALL_SHARE = 0.05
"""Attackers are called ruled out if more of them than this are. Few collections can exclude much
less, and no more than that moves a mean by little against the worst case that verdicts tell."""


def find_attackers(
    fraction: float, interval: tuple[float, float] | None, doubt: bool, may_be_chance: bool
) -> str:
    """The finding of a fit with this share of attackers and its 95 % interval.

    >>> find_attackers(0.0, (0.0, 0.02), doubt=False, may_be_chance=False)
    'ruled-out'
    >>> find_attackers(0.0, (0.0, 0.27), doubt=False, may_be_chance=False)
    'unclear'
    >>> find_attackers(0.1, (0.09, 0.11), doubt=True, may_be_chance=False)
    'found'
    """
    if fraction > 0:
        return UNCLEAR if may_be_chance else ATTACKERS_FOUND
    if doubt or interval is None or interval[1] > SMALL_SHARE:
        return UNCLEAR
    return RULED_OUT
