"""Users who stop before they have sent all reports: groups of many reports a user are short.

docs/method.md, Broken clients.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy

from unpoison.filters.client_faults import constants
from unpoison.filters.client_faults.finding import ClientFault
from unpoison.filters.joint import Fit, JointCounts, PoisonModel, fit
from unpoison.filters.joint import constants as joint_constants
from unpoison.system.blas import single_threaded
from unpoison.types import FloatArray, IntArray

DROPOUT = "dropout"


@single_threaded
def whole_groups_fit(counts: JointCounts, model: PoisonModel) -> Fit:
    """A model fitted to the groups with the fewest reports a user, which lose the least.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=4.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(50_000), rng=rng, fault="dropout", faulty_fraction=0.3)
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = PoisonModel.nobody(*counts.counts.shape)
    >>> bool(abs(whole_groups_fit(counts, nobody).mean(counts.values)) < 0.05)
    True
    """
    whole = counts.reports_per_user == counts.reports_per_user.min()
    weights = np.where(whole, 1.0, constants.NO_WEIGHT)
    weighted = replace(counts, counts=weights[:, None] * counts.counts)
    return fit(weighted, model)


def find_dropout(
    groups: tuple[int, ...], users: FloatArray, expected: FloatArray, reports_per_user: IntArray
) -> ClientFault | None:
    """Users who stop, if groups are the shorter the more reports their users send.

    `users` are reports over the reports of a user, `expected` is what they should be in proportion
    to. That groups are not all alike is tested elsewhere; here is whether such a loss explains it.
    Attackers who report in some groups alone would have to choose those with few reports a user.

    >>> once, often = np.array([1, 1, 4, 8]), np.array([8, 4, 1, 1])
    >>> users, expected = np.array([2500.0, 2500, 2250, 2200]), np.full(4, 2500.0)
    >>> find_dropout((0, 1, 2, 3), users, expected, once).detail["kept"]
    [1.0, 1.0, 0.9, 0.88]
    >>> find_dropout((0, 1, 2, 3), users, expected, often) is None
    True
    """
    order = np.argsort(reports_per_user, kind="stable")
    fewest = reports_per_user == reports_per_user.min()
    if fewest.all():
        return None
    present = users / expected
    whole = float(users[fewest].sum() / expected[fewest].sum())
    falling = scipy.optimize.isotonic_regression(
        present[order], weights=expected[order], increasing=False
    ).x
    explained = np.empty_like(falling)
    explained[order] = falling
    means = explained * expected
    # A group may have no reports at all.
    misfit = float(((users - means) ** 2 / np.maximum(means, 1.0)).sum())
    if (
        scipy.special.chdtrc(len(users) - 1, misfit) < joint_constants.LEAST_FIT_P_VALUE
        or explained[~fewest].min() >= whole
    ):
        return None
    shares = np.minimum(present / whole, 1.0)
    lost = 1 - float((shares * expected).sum() / expected.sum())
    short = tuple(group for group, few in zip(groups, fewest, strict=True) if not few)
    sentence = (
        "Groups whose users send many reports have fewer reports than they should: users stop "
        "before they have sent all."
    )
    doubt = (
        "If that depends on their value, the number is off; the interval allows for what the "
        "groups say that are not short."
    )
    detail = {"kept": [float(share) for share in shares.round(4)]}
    return ClientFault(DROPOUT, short, lost, sentence, detail, doubt)
