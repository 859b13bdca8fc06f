"""k-RR against two libraries that offer it: the time to frequencies, and whether all agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpoison.bench.result import Result, benchmarks, faster, limit, race, seconds
from unpoison.errors import MissingExtra
from unpoison.mechanisms import RandomizedResponse
from unpoison.types import FloatArray, IntArray

USERS = 10**6
"""Enough for the fixed costs of a call not to count."""
CATEGORIES = 32
"""As many as a list of age groups or of regions has."""
EPSILON = 1.0
"""The middle one of the paper's budgets; the time hardly depends on it."""
USERS_AT_ONCE = 2**15
"""Users whose arrays stay in the processor's cache together."""
AT_LEAST = 50
"""The speed-up over either library that is aimed at."""
SIGMAS = 6.0
"""Standard deviations that a right estimate is almost never off: two of 10^9 are, by chance."""

Rival = Callable[[list[int], RandomizedResponse], FloatArray]


@benchmarks.register("k-rr", order=1)
def k_rr() -> list[Result]:
    """Measure k-RR from 10^6 users to frequencies of 32 categories, at ε = 1."""
    rng = np.random.default_rng(1)
    others = rivals()
    users = CategoryUsers.draw(USERS, RandomizedResponse(EPSILON, CATEGORIES), rng)
    results: list[Result] = []
    for name, rival in others.items():
        results += compare(users, name, rival, rng)
    taken = min(seconds(lambda: users.frequencies(rng)) for _ in range(5))
    return [*results, limit(users.title, taken, lambda: rng.random(USERS))]


@dataclass(frozen=True)
class CategoryUsers:
    """Users known by the number of their category, and the mechanism by which they report it."""

    mechanism: RandomizedResponse
    categories: IntArray

    @classmethod
    def draw(
        cls, users: int, mechanism: RandomizedResponse, rng: np.random.Generator
    ) -> CategoryUsers:
        """Frequencies from half to one and a half times the average, in no order.

        None is near 0, where a library that cuts off negative estimates would have a bias.
        """
        shares = rng.permutation(np.linspace(0.5, 1.5, mechanism.cells)) / mechanism.cells
        return cls(mechanism, rng.choice(mechanism.cells, users, p=shares))

    @property
    def title(self) -> str:
        """The beginning of the name of every result."""
        users, mechanism = len(self.categories), self.mechanism
        return f"k-RR, {users:,} users, {mechanism.cells} categories, ε = {mechanism.epsilon:g}"

    @cached_property
    def truth(self) -> FloatArray:
        """The frequency of each category."""
        counts = np.bincount(self.categories, minlength=self.mechanism.cells)
        return counts / len(self.categories)

    @cached_property
    def deviations(self) -> FloatArray:
        """The standard deviation of the estimate of each frequency, which is known exactly."""
        kept, other = self.mechanism.kept, self.mechanism.other
        spread = self.truth * kept * (1 - kept) + (1 - self.truth) * other * (1 - other)
        return np.asarray(np.sqrt(spread / len(self.categories)) / (kept - other))

    def frequencies(self, rng: np.random.Generator) -> FloatArray:
        """Perturb, count and decode; as many users at once as stay in the processor's cache."""
        counts = np.zeros(self.mechanism.cells, dtype=np.int64)
        for first in range(0, len(self.categories), USERS_AT_ONCE):
            users = self.categories[first : first + USERS_AT_ONCE].astype(np.float64)
            reports = self.mechanism.perturb(users, rng).astype(np.int64)
            counts += np.bincount(reports, minlength=len(counts))
        return self.mechanism.decode(counts / len(self.categories))


def compare(
    users: CategoryUsers,
    name: str,
    rival: Rival,
    rng: np.random.Generator,
    rounds: int = 5,  # as in `race`
) -> list[Result]:
    """Time and estimates of both; what a rival compiles, it compiles before it is timed."""
    items = users.categories.tolist()
    ours, theirs = users.frequencies(rng), rival(items, users.mechanism)
    times = race(
        lambda: users.frequencies(rng), lambda: rival(items, users.mechanism), rounds=rounds
    )
    return [
        faster(f"{users.title}: time against {name}", *times, AT_LEAST),
        agreement(users, name, ours, theirs),
    ]


def agreement(users: CategoryUsers, name: str, ours: FloatArray, theirs: FloatArray) -> Result:
    """Whether both are near the truth and each other, by the sampling error that k-RR must have."""
    our_error, their_error = (
        float(np.abs((estimate - users.truth) / users.deviations).max())
        for estimate in (ours, theirs)
    )
    difference = float(np.abs((ours - theirs) / users.deviations).max()) / math.sqrt(2)
    return Result(
        f"{users.title}: largest error, in standard deviations, beside {name}",
        f"{our_error:.1f} σ",
        f"{their_error:.1f} σ",
        None,
        f"≤ {SIGMAS:g} σ",
        all(error <= SIGMAS for error in (our_error, their_error, difference)),
    )


def rivals() -> dict[str, Rival]:
    """The libraries by name, each used as its own documentation does."""
    try:
        from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
        from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    except ImportError:
        raise MissingExtra("the benchmark k-rr", "bench") from None

    def pure_ldp(items: list[int], mechanism: RandomizedResponse) -> FloatArray:
        keys = {"epsilon": mechanism.epsilon, "d": mechanism.cells, "index_mapper": int}
        client, server = DEClient(**keys), DEServer(**keys)
        for item in items:
            server.aggregate(client.privatise(item))
        counts = server.estimate_all(range(mechanism.cells), suppress_warnings=True)
        return np.asarray(counts / len(items))

    def multi_freq_ldpy(items: list[int], mechanism: RandomizedResponse) -> FloatArray:
        epsilon, cells = mechanism.epsilon, mechanism.cells
        reports = [GRR_Client(item, cells, epsilon) for item in items]
        return np.asarray(GRR_Aggregator_MI(reports, cells, epsilon))

    return {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}
