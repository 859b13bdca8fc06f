"""Numbers of the distribution behind a joint fit that the counts do not determine, with reasons."""

from __future__ import annotations

import numpy as np

# Input values (`grid.py`)

INPUT_BUCKETS = 64
"""Buckets of a distribution, and so its resolution: with twice as many, it takes three times as
long, and intervals become narrower only where ε and the number of users are large."""

ATOM_WIDTH = 1e-6
"""Width of the bucket that stands for a single value, as a part of the range: far below what any
interval resolves."""

# The model near a fit (`local_model.py`)

FAR_FROM_ZERO = 6.0
"""Standard deviations (with all else given) from which poison of a bucket surely is positive."""

MOST_BOUNDED = 64
"""Weights that are held to be positive, at most: the time of a band grows with their number."""

# Quadratic programs (`program.py`)

ACCURACY = 1e-5
"""Gap at which the minimum is near enough, in units of deviance: intervals ask for 3.84 of it."""

MOST_PROGRAM_STEPS = 60
"""Steps of a program, at most. 5 to 15 are usual; where one has hardly a solution it would not
end."""

STEP_TO_BOUND = 0.995
"""Fraction of the way to the nearest bound that a step may go: 1 would put a variable on it."""

FIRST_SLACK = 1e-3
"""Slack of every bound at the start, as a fraction of the steepest slope. Programs then took 8
steps on average, and 10 with a hundredth or a hundred times as much."""

RIDGE = 1e-10
"""Added to H, as a fraction of its diagonal: neighbouring buckets are nearly indistinguishable."""

# The smooth histogram (`smooth_histogram.py`)

SMOOTHING_WEIGHTS = 10.0 ** np.arange(-3, 7)
"""λ that are tried. With densities relative to an even one, the smallest leaves spikes as they are
and the largest allows a straight line only."""

EMPTY_SHARE = 1e-6
"""Share under which a bucket is empty, up to the accuracy of the solver."""

NEGLIGIBLE_EIGENVALUE = 1e-8
"""Eigenvalue of the penalty, over the largest, under which it is one of those that are 0."""

# Extreme values (`extremes.py`)

FIRST_POSITIVE = 1e-7
"""Share above which a variable of the interior-point solution counts as positive at first: a guess,
which pivots correct. They were at most two from 1e-8 to 1e-5, and eleven with 1e-9, since the
solver leaves variables that should be 0 at about that."""

MOST_PIVOTS = 300
"""Changes, at most, until the positive variables of the minimum are known exactly."""

PATIENCE = 5
"""Rounds in which all wrong variables change at once though that makes no fewer: then one by one,
which cannot go round in circles (Murty)."""

MOST_PATH_STEPS = 60
"""Steps of one path, at most; 10 are usual, 50 with very few reports. A path that ends here has no
bound of its own, and takes that of a neighbouring edge."""

ROUNDING = 1e-9
"""Size of rounding errors: of shares, and of slopes over the steepest one."""

BROKEN = 1e-5
"""Negative share (or slope over the steepest) at which a path is numerically broken: no bound."""
