"""The level at which "nobody attacks" is rejected."""

NOBODY_ATTACKS_LEVEL = 0.05
"""p-value of "nobody attacks" under which it counts as rejected: one of twenty quiet collections
raises a false alarm, as for the 95 % intervals beside it."""
