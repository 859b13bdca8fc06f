"""Numbers of the worst case that the counts do not determine, each with its reason."""

from __future__ import annotations

CELL_EXPONENT = 2 / 7
"""A group of n users has n to this power cells: 17 with 20,000 users, 63 with two million. Few
cells leave less room for noise, many tell more of what poison hides. The best number for ε = 1 and
ε = 2 was near 16 with 10⁵ users, and still grew with 10⁹."""

CELLS_IN_NOISE = 4
"""Cells across the width over which a mechanism spreads one value, at least where there are so many
buckets: wider cells would hide differences between values that the reports show."""

PROGRAM_VALUES = 64
"""Values at which the program starts to hold a bound to what it must bound, with the two ends. All
others are checked afterwards; those are added at which the bound falls short most."""

PENALTY = 4.0
"""Weight ρ of the ridge, times the standard error of the plain estimate: too large a weight keeps a
bound from following the reports, too small a one lets it follow their noise. The least bounds were
at 3 to 12 for ε from 1/4 to 8 and 10⁴ to 10⁶ users; choosing among several by the counts would
make bounds too low."""

FIRST_BARRIER = 0.01
"""Barrier at the start, for values on [−1, 1] and some hundred bounds. Programs took 15 steps on
average, and no fewer with a tenth or ten times as much."""

LAST_BARRIER = 1e-6
"""Barrier at which the program stops, for values on [−1, 1]: with 400 bounds the result is then
wider than it could be by 0.0004 at most."""

BARRIER_FALL = 0.1
"""Factor by which the barrier falls after a full step: the next step then stays one, mostly. With
three times as much or a third, programs took as many steps."""

CAREFUL_BARRIER_FALL = 0.5
"""Factor by which the barrier falls after a step that a bound cut short: with 0.2 in its place,
bounds cut more steps short, and programs took 19 on average instead of 15."""

STEP_TO_BOUND = 0.99
"""Fraction of the way to the nearest bound that a step may go: 1 would put a variable on it, from
which no further step could start; with 0.9, programs took two steps more."""

FULL_STEP = 0.9
"""Fraction of a Newton step from which it counts as full: what is left of the distance to the
central path is then a tenth, and the barrier can fall by as much."""

TOLERANCE = 1e-3
"""Distance that products of variables and multipliers may have from the last barrier, relative to
it. Bounds change by 10⁻⁷ with a tenth of it, and by 4·10⁻⁵ with a hundred times as much."""

MOST_STEPS = 80
"""Steps of one program, at most: 22 were the most that were seen. Every point on the way is a valid
bound, if a wider one."""

MOST_ROUNDS = 4
"""Rounds in which values are added at which a bound falls short, at most: two were enough in every
collection that was tried, and a bound that still falls short is raised."""

VALUES_AT_ONCE = 32
"""Values added in one round, at most: half of those at the start. With 8 there were five rounds,
with 128 as many rounds and larger programs."""

SHORTFALL = 1e-3
"""Part of half the range by which a bound may fall short before values are added: it is raised
by as much anyway."""

LEVEL = 0.05
"""Chance with which the range may miss the truth: at most 1 in 20, half of it at either end, as for
all intervals."""

LEAST_LEVEL = 0.01
"""Chance with which `least_attackers` may be too high. It accuses, so it must be right more
often."""
