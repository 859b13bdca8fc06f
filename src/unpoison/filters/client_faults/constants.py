"""Numbers of the tests for broken clients, each with its reason."""

from __future__ import annotations

FALSE_ALARMS = 1e-3
"""Chance that a collection of healthy clients is said to have broken ones, at most, of each kind of
fault. Tests of one kind share it (Bonferroni)."""

# Rounding (`lattices.py`, `rounding.py`)

ROUNDING_LEVEL = 1e-6
"""Chance that honest reports are taken for rounded ones, of all lattices and groups of a collection
together. So small a level costs no power:
reports that are rounded, even few of them, are on a lattice far beyond chance."""

DECIMAL_STEPS = (1.0, 2.0, 2.5, 5.0)
"""Spacings that people round to, times powers of ten. Powers of two are tried besides."""

FEWEST_LATTICE_POINTS = 2
"""Points of a lattice in the report domain, at least: attackers may well send one value."""

SAME_SHARE = 0.75
"""A coarser lattice that has this part of the reports on the best one is taken in its place.
Multiples of 1 are multiples of 0.1 too, and every second point of a lattice has about half."""

LATTICE_BLOCKS = 8
"""Parts of the report domain in which a lattice is looked for separately, unless most reports are
on it: attackers who send a few points are on it in a few parts."""

BLOCKS_ON_LATTICE = 0.75
"""Part of these blocks that must show the lattice, of those with enough reports to show it."""

ENOUGH_IN_BLOCK = 5
"""Reports on a lattice that a block must let expect before it counts: zero of five has a chance of
under one per cent."""

MAJORITY = 0.5
"""The share of reports above which attackers, who are in the minority, cannot have sent them."""

NEARLY_ALL = 0.9
"""Share of rounded reports above which buckets are made so wide that each holds a lattice point:
narrower ones would be all but empty, and say nothing."""

MOST_BROKEN = 1 - 1e-6
"""Share of broken clients, at most, in a model: with all of them broken, cells that they never
report in would be impossible, and one stray report would outweigh all others."""

# Other models of clients (`hypotheses.py`, `comparison.py`)

TRIED_BELOW = 0.01
"""p-value of "all clients work, and nobody attacks" under which other clients are tried."""

FACTORS = (0.5, 2.0)
"""Factors by which clients may have mistaken a budget: it was halved once more, or once less."""

LEAD_PER_BUCKET = 2.0
"""Lead in score over the best model of the poison, per bucket, from which a fault is certain. An
attack that is spread over all buckets, and faint in each, has a score that is higher by as much
than that of a fault with one parameter which explains the counts alike."""

MOST_FITTED = 3
"""Models of broken clients that are fitted exactly, of those that may explain the counts best."""

SHARE_ACCURACY = 1e-3
"""Accuracy to which the share of broken clients is found, about its standard error with a million
users."""

CLEAR_SPIKE = 3.0
"""Multiple of its neighbours' reports that a cell must have to be an end of a range that
clients clip to. Healthy clients of users who share values reach twice: two windows that overlap."""

SPIKE_NEIGHBOURS = 16
"""Cells on either side that a cell is compared with."""

MOST_COARSE_LATTICES = 2
"""Lattices of few points that are tried as models of rounding, the coarsest first."""

MOST_SPIKES = 4
"""Cells with the most reports that are tried as ends of a clipped range: there are two ends, and
attackers may have points of their own."""

MOST_SCATTER = 1.1
"""Factor on the variance of counts up to which reports of one user are as good as independent.
Clients with too large a budget send several reports that all show one value."""

ACCEPTANCE_ROUNDS = 2
"""Rounds in which the values of broken clients' users whose reports are refused are found anew."""

SHARE_STEP = 0.02
"""Change of the share of broken clients by which its certainty is found: more than its
accuracy, and little enough for the deviance to be a parabola."""

# Users who stop (`dropout.py`)

NO_WEIGHT = 1e-9
"""Factor on the counts of groups that are left out of a fit: a billion reports count as one."""
