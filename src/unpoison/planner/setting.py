"""What a recommendation is asked for: users, attackers to withstand, and the effort."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.errors import InvalidParameter
from unpoison.filters.attacker_share import MOST_ATTACKERS

FEWEST_USERS, MOST_USERS = 1000, 10**9 - 1
"""NumPy draws without replacement, which sharing out users takes, from fewer than 10^9."""


@dataclass(frozen=True)
class Setting:
    """The number of users, the share of attackers to withstand, and the effort of a prediction.

    `trials` multiplies the number of simulated collections. The same setting gives the same
    collections, and so the same advice.

    >>> Setting(users=10_000, tolerate=0.25).seed
    0
    """

    users: int
    tolerate: float
    trials: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not FEWEST_USERS <= self.users <= MOST_USERS:
            rule = f"must be a whole number from {FEWEST_USERS} to {MOST_USERS}"
            raise InvalidParameter("users", rule, self.users)
        if not 0 < self.tolerate < MOST_ATTACKERS:
            rule = "must be above 0 and below 1/2: more attackers than that outvote honest users"
            raise InvalidParameter("tolerate", rule, self.tolerate)
        if self.trials < 1:
            raise InvalidParameter("trials", "must be at least 1", self.trials)
