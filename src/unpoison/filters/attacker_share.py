"""How many attackers there may be for anything to be known."""

MOST_ATTACKERS = 0.5
"""A share of users. As the majority, attackers could be the honest ones, for all the data say."""
