"""The largest share of attackers under which anything can be known (the paper's threat model)."""

MOST_ATTACKERS = 0.5
"""Share of users from which on attackers are the majority. The data then cannot tell which part of
the users is the honest one, so no estimator can."""
