"""Every number of the joint filter that the counts do not determine, with its reason.

Modules read them as `constants.NAME` at the time of use, so that `unpoison bench joint-constants`
can halve and double each one and print what that does; docs/method.md keeps its table. A numeric
literal elsewhere in `filters/joint` fails a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated


class Origin(Enum):
    """Where the value of a constant comes from.

    >>> Origin.TEST_LEVEL.value
    'test level'
    """

    TEST_LEVEL = "test level"
    """An error rate of a test, or of an interval, that is stated to the reader of an estimate."""
    SOLVER = "solver"
    """Accuracy or path of a numerical method; the answer should not depend on it."""
    WORK = "bound on work"
    """A limit on rounds, draws or candidates; more costs time and should change little."""
    JUDGEMENT = "chosen by looking"
    """Chosen by looking at simulated collections, with no derivation."""


@dataclass(frozen=True)
class Below:
    """An exclusive upper limit of a constant's meaning, such as 1 for a fraction.

    >>> Below(1.0).limit
    1.0
    """

    limit: float


Level = Annotated[float, Origin.TEST_LEVEL, Below(1.0)]
SolverNumber = Annotated[float, Origin.SOLVER]
SolverFraction = Annotated[float, Origin.SOLVER, Below(1.0)]
Work = Annotated[int, Origin.WORK]
Judgement = Annotated[float, Origin.JUDGEMENT]
JudgedCount = Annotated[int, Origin.JUDGEMENT]

# Buckets (`counts.py`)

MOST_BUCKETS: JudgedCount = 64
"""Input and output buckets of a group, at most. Poison that may be anywhere absorbs noise, the less
the fewer buckets there are: 64 gave a better γ̂ than the paper's √N."""

FEWEST_BUCKETS: JudgedCount = 8
"""Buckets of a group, at least. Applies only where the smallest group has under 64 reports."""

MOST_LATTICE_VALUES: Work = 128
"""Values of a plan with a step, at most, that each have an entry of the honest histogram; of more,
buckets are used. Percentages, 0 to 100, have one each."""

# Interior-point method (`point.py`, `solver.py`)

FIRST_BARRIER: SolverNumber = 100.0
"""Barrier μ at the start, in units of log-likelihood: large enough to keep the first steps away
from the bounds."""

LAST_BARRIER: SolverNumber = 1e-4
"""Barrier μ at which the method stops. The log-likelihood is then short of its maximum by about μ
for each bound: some 0.01 in all, where a standard error of the answer is 0.5."""

BARRIER_FALL: SolverFraction = 0.2
"""Factor by which μ falls at least, after a step that was not cut short."""

CENTRING_AFTER_FULL_STEP: SolverFraction = 0.1
"""Next μ as a fraction of the present gap per bound, after a full step (Mehrotra's σ)."""

CENTRING_AFTER_CUT_STEP: SolverFraction = 0.3
"""Next μ as a fraction of the present gap per bound, after a step that a bound cut short: nearer a
bound, more centring."""

FULL_STEP: SolverFraction = 0.9
"""Fraction of a Newton step from which it counts as full. Convergence asks for a full step."""

SHORT_STEP: SolverFraction = 0.3
"""Fraction of a Newton step up to which μ stays: so short a step says that the point is too near a
bound to lower the barrier."""

STEP_TO_BOUND: SolverFraction = 0.995
"""Fraction of the way to the nearest bound that a step may go. 1 would put a variable on its bound,
where its barrier is infinite."""

GAP_SLACK: SolverNumber = 2.0
"""Factor on the last barrier's gap under which the method has converged. On the central path the
gap is μ for each bound, so 1 would be exact and hardly ever met."""

MOST_STEPS: Work = 200
"""Steps of one fit, at most. 10 to 20 are usual; a fit that ends here says it did not converge."""

STEPS_BEFORE_GIVING_UP: Work = 20
"""Steps after which a fit of a model that cannot explain the counts is abandoned."""

HOPELESS_DEVIANCE: Annotated[float, Origin.WORK] = 100.0
"""Deviance per bucket above which a model cannot explain the counts. Noise alone gives about 1."""

FIRST_ATTACKER_SHARE: SolverFraction = 0.2
"""γ_t at the start of a fit with poison."""

FIRST_FLAT_SHARE: SolverFraction = 0.02
"""γ_t at the start of a fit of evenly spread poison. Near 0, because the likelihood of noise over
the whole domain has a second peak at nothing but noise, which a start far from 0 could climb."""

# Where poison may be (`initial_support.py`, `support_search.py`)

SUPPORT_LEVEL: Level = 0.05
"""Chance that noise alone breaks any bound of the linear program for the least poison."""

NEIGHBOURS: JudgedCount = 2
"""Buckets by which a support is widened on either side, as a start and to tell its islands
apart."""

ONE_SIDED_CUTS: JudgedCount = 4
"""Parts of the report domain whose edges are the cuts of one-sided supports to start from."""

MOST_STARTS: Work = 2
"""Supports of a kind of model, the best of those to start from, that are grown and pruned."""

NOTICEABLE_RESIDUAL: Judgement = 2.0
"""Residual, in standard deviations, above which a bucket beside the support is added to it while
the model does not fit. A group with a smaller share of attackers is left out on trial."""

FAINT_POISON: Annotated[tuple[float, float], Origin.JUDGEMENT] = (1.0, 2.0)
"""Poison of a bucket, in standard deviations, below which the bucket is left out on trial, in this
order. √ln n follows as the last, where BIC stops paying for a bucket."""

MOST_SUPPORT_ROUNDS: Work = 10
"""Rounds of growing and pruning a support, or of trying it without its islands, at most."""

# Which groups are attacked (`attacked_groups.py`, `group_search.py`)

FEW_GROUPS: Work = 5
"""Groups up to which every set of them is tried as the attacked ones: 30 sets, besides all."""

MOST_ATTACKED_SETS: Work = 4
"""Sets of groups from which poison in some groups alone is sought, the most promising first."""

# Poison in ranges (`faint_poison.py`, `range_search.py`)

COARSE_VALUES: Work = 16
"""Parts of the range of values at whose edges ranges of poison may begin, in a first look."""

FINE_VALUES: Work = 64
"""The same where a range is placed as exactly as buckets allow."""

FAR_ENDS: Annotated[tuple[float, float], Origin.JUDGEMENT] = (1.0, 0.75)
"""Where ranges that begin at a value end: at the end of the report domain, or half way from its
middle to there, as the paper's [O, C] and [O, C/2] do."""

MOST_MISSING_RANGES: Work = 3
"""Ranges of buckets that are added to the best support, one after another, at most."""

FAINT_PRIOR: Annotated[float, Origin.JUDGEMENT, Below(1.0)] = 0.9
"""Probability, before the counts are seen, that there is poison besides that which is found. An
interval is to hold if somebody attacks, so this is near 1; at 1/2 intervals of collections without
attackers are a tenth narrower."""

LEAST_FAINT_SHARE: Annotated[float, Origin.JUDGEMENT, Below(1.0)] = 1e-3
"""Share of further attackers from which intervals allow for them. Beforehand, shares between this
and one half are as likely in any two ranges of the same ratio."""

FAINT_SHARES: Work = 40
"""Shares of further attackers that are looked at: each is a sixth above the one before."""

NEGLIGIBLE_PROBABILITY: SolverNumber = 1e-7
"""Probability of a part of the mixture under which it is left out."""

MIXTURE_PARTS: Work = 500
"""Parts of the mixture from which quantiles are computed, at most."""

# Which model (`model_search.py`, `selection.py`)

LEAST_FIT_P_VALUE: Level = 1e-3
"""p-value of the goodness-of-fit test under which a model does not explain the counts."""

POOR_FIT_P_VALUE: Annotated[float, Origin.JUDGEMENT, Below(1.0)] = 0.01
"""p-value under which a model explains the counts poorly, so that the verdict warns."""

REFINEMENT_LEVEL: Level = 0.05
"""p-value of the best model under which values that many users share are looked for."""

SIGNIFICANCE: Level = 0.05
"""Level at which a model with more parameters is significantly better than the chosen one."""

CLOSE_SCORE: Annotated[float, Origin.TEST_LEVEL] = 6.0
"""Difference of scores within which a model may be true as well: odds of exp(-6/2), 1 in 20."""

WIDENINGS: Annotated[tuple[int, int, int], Origin.JUDGEMENT] = (1, 2, 4)
"""Buckets by which the chosen support is widened for the interval: poison may end within a bucket,
or fade below the noise. Up to a sixteenth of the report domain."""

# Values that many users share (`point_values.py`, `honest_mixture.py`)

VALUE_SEARCHES: Work = 2
"""Searches for poison with values that many users share, at most, each with those that the poison
found before asks for."""

MOST_VALUE_ROUNDS: Work = 4
"""Rounds in which values are sought anew with the poison that fits the last ones, at most."""

HELD_SHARE: SolverNumber = 1e-6
"""Share of users under which a value is not added: fewer than one user of a million."""

MOST_MIXTURE_STEPS: Work = 8
"""Steps of scoring for a histogram over many values, at most. Two to four are usual."""

MIXTURE_GAIN: SolverNumber = 0.1
"""Fall of the deviance in a step under which that histogram has converged."""

MIXTURE_RIDGE: SolverNumber = 1e-10
"""Added to the diagonal, in units of it, where values are left out of that histogram on trial."""

# Intervals (`intervals.py`, `noise.py`)

INTERVAL_LEVEL: Level = 0.05
"""How often an interval may miss: 95 % intervals."""

FARTHEST_MIDDLE: SolverNumber = 8.0
"""Standard errors that the middle of an interval may lie beyond a limit. Rounding errors of the
normal distribution matter farther out, and none lies there by chance."""

NOISE_LEVEL: Level = 0.05
"""Level of the test that must not notice noise over the whole domain, for
`fit.interval_with_noise`."""

NOISE_HALVINGS: Work = 7
"""Halvings of [0, 1/2] in the search for the largest unnoticed share of noise: to 0.004."""

# Does anybody attack? (`significance.py`)

AGREEMENT_PART: Level = 0.1
"""Part of the level of "nobody attacks" that the test of the groups' averages has. That test is
cautious, so a larger part would be lost."""

P_VALUE_REPLICATES: Work = 40
"""Collections drawn to find the degrees of freedom of "nobody attacks"."""

P_VALUE_REPLICATES_FEW_BUCKETS: Work = 200
"""Collections drawn for the p-value of "nobody attacks" with few buckets, where the variance of the
deviance is taken from them too."""

FEW_BUCKETS: JudgedCount = 100
"""Buckets of all groups together up to which the deviance follows a scaled χ²: the reports of one
user are alike, which shows where there are few buckets."""

CERTAIN_P_VALUE: Annotated[float, Origin.WORK, Below(1.0)] = 1e-6
"""p-value by a count of parameters under which no collection is drawn to find it more exactly."""
