"""Numbers of the fit category by category, and what depends on each."""

from __future__ import annotations

FALSE_ALARMS = 0.05
"""Chance that any category of a quiet collection is named: of all of them together, so that 10⁵
categories raise no more alarms than ten. The level at which "nobody attacks" is rejected."""
FALSELY_NAMED = 0.5
"""Categories named falsely, on average at most, in a collection that is known to be attacked. Who
pushes a hundred categories pushes each a little: with the level of quiet collections most of them
would stay unnamed."""
MOST_GROUPS_IN_ANY_SET = 5
"""Groups up to which every set of them is tried (31 sets); of more, all, each alone, and all but
one. Attackers who enrol everywhere and report in two of six groups are then met by the best of
these."""
REWEIGHTINGS = 3
"""Times that lines are fitted, each with the variances of the line before. A fourth changes no
frequency by a hundredth of its standard deviation."""
SHARE_ROUNDS = 20
"""Bound on the rounds in which the attackers' share and the lines follow each other: the share
enters by the baseline alone, so that each round is nearer by a factor of the baseline."""
MOST_ATTACKERS = 0.95
"""Share of attackers that lines are fitted with at most: with none but attackers there is no line.
A share above one half is told as what it is, and no frequency is relied on then."""
SETTLED = 1e-9
"""Change of the attackers' share that ends the rounds: far below any standard deviation."""
LEAST_EXPECTED = 0.5
"""Reports that a cell is taken to expect at least: the variance of an empty one is not zero, so
that intervals near zero have a width."""
COMMON_CELLS = 5.0
"""Reports that cells must expect on average before all of them together are tested by χ²."""
MOST_TURNS = 12
"""Bound on the turns in which categories are taken: each takes all that are lifted by at least half
as much as the most lifted one, so that twelve span lifts that differ by a factor of 4,000."""
FIRST_TAKEN = 0.5
"""Part of the largest lift that a category must have to be taken in the same turn. What attackers
take from one category that they do not push is far less than what they add to one that they do."""
POOR_FIT = 1e-3
"""p-value of the suspicious categories' lines under which poison is taken to differ between groups.
Lower than a usual level: what is then given up, the frequencies of these categories, is much."""
CLOSELY = 2.0
"""Deviations above which a tail is computed from the counts; below it is no news anyway."""
DOUBLINGS, EXPONENT_HALVINGS = 60, 50
"""Bounds on the steps in which Chernoff's exponent is bracketed and halved: to a part in 10¹⁵."""
OUTSIDE = 0.05
"""Chance that noise alone puts any true frequency outside its range in the worst case."""
SHARE_HALVINGS = 20
"""Steps in which the least share of attackers is found: to a millionth."""
TWO_SIDED_95 = 1.959963984540054
"""Standard deviations of a 95 % interval."""
