"""Search for the support of the poison: grown and pruned by what the counts say.

docs/method.md, Where poison may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.fitting import Fit
from unpoison.filters.joint.initial_support import in_any_group, widened, with_neighbours
from unpoison.filters.joint.model import OWN, PoisonModel
from unpoison.filters.joint.model_search import ModelSearch, poison_in_deviations
from unpoison.types import BoolArray


def refine_support(search: ModelSearch, model: PoisonModel) -> Fit:
    """Add buckets where counts exceed what is expected, leave out those of poison within noise.

    A change is kept if it makes the model rank better. Evenly spread poison stays as it is.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> search = ModelSearch(JointCounts.of(run.summary, range(4)))
    >>> refined = refine_support(search, PoisonModel.alike(np.ones(64, dtype=bool), 4))
    >>> refined.model.shared_buckets.tolist() == [*range(56, 64)]
    True
    """
    best = search.fit(model)
    for _ in range(0 if model.flat else constants.MOST_SUPPORT_ROUNDS):
        changed = _pruned(search, _grown(search, best))
        if changed is best:
            break
        best = changed
    return best


def refine_best(
    search: ModelSearch, starts: Sequence[PoisonModel], most: int | None = None
) -> None:
    """Refine the support of those models to start from that rank best.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> search = ModelSearch(JointCounts.of(run.summary, range(4)))
    >>> upper = [np.arange(64) >= first for first in (0, 32, 62)]
    >>> refine_best(search, [PoisonModel.alike(buckets, 4) for buckets in upper])
    >>> search.best.model.shared_buckets.tolist()
    [63]
    """
    ranked = sorted(starts, key=lambda start: search.rank(search.fit(start)))
    for start in ranked[: constants.MOST_STARTS if most is None else most]:
        refine_support(search, start)


def try_without_islands(search: ModelSearch) -> None:
    """Try the best `own` model without each of its islands, until none of these is better.

    Poison that was wrongly blamed on one island hides that which is missing elsewhere, and no
    change of single buckets can tell: both have to change at once.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> search = ModelSearch(JointCounts.of(run.summary, range(4)))
    >>> support = np.zeros((4, 64), dtype=bool)
    >>> support[:, 63], support[0, :8] = True, True
    >>> try_without_islands(search) if search.fit(PoisonModel.own(support)) else None
    >>> bool(search.best.model.support[:, :8].any())
    False
    """
    for _ in range(constants.MOST_SUPPORT_ROUNDS):
        best = search.best
        parts = islands(best.model.support) if best.model.kind == OWN else []
        for island in parts if len(parts) > 1 else []:
            refine_support(search, best.model.with_support(best.model.support & ~island))
        if search.best is best:
            break


def islands(support: BoolArray) -> list[BoolArray]:
    """Connected parts of a support, over neighbouring buckets and groups; small gaps connect.

    >>> import numpy as np
    >>> support = np.zeros((2, 9), dtype=bool)
    >>> support[0, :2] = support[1, 1] = support[0, 8] = True
    >>> [int(island.sum()) for island in islands(support)]
    [3, 1]
    """
    # Corners connect too: poison may shift by a bucket from one group to the next.
    with_corners = scipy.ndimage.generate_binary_structure(2, 2)
    labels, number = scipy.ndimage.label(widened(support), structure=with_corners)
    return [support & (labels == label) for label in range(1, number + 1)]


def _grown(search: ModelSearch, best: Fit) -> Fit:
    """Own poison with further buckets where residuals are large, as long as that is better.

    While the model does not fit, smaller residuals count too if they are next to the support, or
    in a bucket that other groups have in theirs.
    """
    for _ in range(constants.MOST_SUPPORT_ROUNDS if best.model.kind == OWN else 0):
        support, residuals = best.model.support, search.residuals(best)
        # √ln n: a bucket that pays for its parameter in BIC.
        added = residuals > math.sqrt(search.counts.bic_penalty)
        if not search.is_possible(best):
            beside = widened(support) | in_any_group(support)
            added |= beside & (residuals > constants.NOTICEABLE_RESIDUAL)
        grown = search.fit(best.model.with_support(support | added))
        if not search.is_better(grown, best):
            break
        best = grown
    return best


def _pruned(search: ModelSearch, best: Fit) -> Fit:
    """Without buckets of little poison, the faintest first; each threshold is kept if better."""
    for threshold in (*constants.FAINT_POISON, math.sqrt(search.counts.bic_penalty)):
        deviations = poison_in_deviations(search.counts, best)
        sizes = [with_neighbours(deviations), deviations] if search.counts.ordered else [deviations]
        for strong in (best.model.support & (size >= threshold) for size in sizes):
            if strong.any():
                pruned = search.fit(best.model.with_support(strong))
                best = pruned if search.is_better(pruned, best) else best
    return best
