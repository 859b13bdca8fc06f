"""The mechanism of a group in which some clients are broken: what users' values lead to then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from unpoison.mechanisms import Mechanism, Transition
from unpoison.mechanisms.randomness import Generator
from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class BrokenClient(ABC):
    """A client that draws a report by some mechanism, and moves it without changing the order.

    >>> from unpoison.filters.client_faults.clipping import ClippingClient
    >>> from unpoison.mechanisms import make
    >>> client = ClippingClient(make("piecewise", 1.0), low=-1.0, high=1.0)
    >>> client.probabilities(np.zeros(1), np.array([-4.0, -0.5, 0.5, 4.0])).round(3).tolist()
    [[0.399, 0.202, 0.399]]
    """

    mechanism: Mechanism
    """The mechanism that the client draws with."""

    @abstractmethod
    def origins(self, edges: FloatArray) -> FloatArray:
        """The smallest drawn report that ends up at each of the edges, or above it."""

    def inner_edges(self, edges: FloatArray) -> FloatArray:
        """The buckets of drawn reports that end up in the buckets with the given edges."""
        return np.clip(self.origins(edges), self.mechanism.output_low, self.mechanism.output_high)

    def is_refused(self, healthy: Mechanism) -> bool:
        """Whether some of its reports are outside of a healthy mechanism's domain."""
        if healthy.categorical:
            return False
        low, high = self.inner_edges(np.array([healthy.output_low, healthy.output_high]))
        return bool(low > self.mechanism.output_low or high < self.mechanism.output_high)

    def probabilities(self, values: FloatArray, edges: FloatArray) -> FloatArray:
        """Chance of each bucket for single inputs, one row a value; reports may be refused."""
        return self.mechanism.cell_probabilities(values, self.inner_edges(edges))

    def transition(self, input_edges: FloatArray, edges: FloatArray) -> FloatArray:
        """Chance of each bucket, averaged over input buckets: one column an input bucket."""
        return self.mechanism.transition(input_edges, self.inner_edges(edges)).dense()


class DenseTransition(Transition):
    """A transition that is given as a matrix.

    >>> DenseTransition(np.eye(2)).forward(np.array([0.25, 0.75])).tolist()
    [0.25, 0.75]
    """

    def __init__(self, matrix: FloatArray) -> None:
        self.sparse, self.inputs = scipy.sparse.csr_array(matrix), matrix.shape[1]

    def write_features(self, histogram: FloatArray, out: FloatArray) -> None:
        """Copy the histogram, whose entries are the features of a dense matrix."""
        out[:] = histogram

    def gather_features(self, features: FloatArray, out: FloatArray) -> None:
        """Copy the features, which are the weights of a dense matrix."""
        out[:] = features


@dataclass(frozen=True, eq=False)
class Users:
    """The values that users are thought to have: how many reports are refused depends on them.

    >>> Users(np.array([0.0, 1.0]), np.array([0.5, 0.5])).histogram.sum()
    np.float64(1.0)
    """

    values: FloatArray
    histogram: FloatArray


class BrokenMechanism(Mechanism):
    """A group's mechanism if a `share` of the clients is broken.

    Reports outside of the group's domain are refused, more often of some values than of others.
    The reports of broken clients are then distributed as A x/(a·x), with A the chance of each
    bucket and a that of any. Near a histogram x̄ of `users` this is linear in x:
    A x/ā + (1 − a·x/ā) r with ā = a·x̄ and r = A x̄/ā. Without users, all values are taken to be
    accepted alike.

    >>> from unpoison.filters.client_faults.clipping import ClippingClient
    >>> from unpoison.mechanisms import make
    >>> healthy = make("piecewise", 1.0)
    >>> broken = BrokenMechanism(healthy, ClippingClient(healthy, low=-1.0, high=1.0), 0.5)
    >>> edges = np.array([-4.0, -0.5, 0.5, 4.0])
    >>> broken.cell_probabilities(np.zeros(1), healthy.grid()).sum().round(6)
    np.float64(1.0)
    """

    def __init__(
        self, healthy: Mechanism, client: BrokenClient, share: float, users: Users | None = None
    ) -> None:
        super().__init__(healthy.epsilon, healthy.cells)
        self.healthy, self.client, self.share, self.users = healthy, client, share, users
        self.input_low, self.input_high = healthy.input_low, healthy.input_high
        self.output_low, self.output_high = healthy.output_low, healthy.output_high
        self.categorical = healthy.categorical  # type: ignore[misc]
        self.discrete = healthy.discrete  # type: ignore[misc]
        self.unbiased = healthy.unbiased

    def cell_probabilities(self, values: FloatArray, output_edges: FloatArray) -> FloatArray:
        """Chance of each cell for single inputs, of healthy and broken clients by their shares."""
        broken = self._of_accepted(self.client.probabilities(values, output_edges), output_edges)
        healthy = self.healthy.cell_probabilities(values, output_edges)
        return (1 - self.report_share) * healthy + self.report_share * broken

    def transition(self, input_edges: FloatArray, output_edges: FloatArray) -> Transition:
        """The transition between buckets: healthy and broken clients mixed by their shares."""
        chances = self.client.transition(input_edges, output_edges)
        broken = self._of_accepted(chances.T, output_edges).T
        healthy = self.healthy.transition(input_edges, output_edges).dense()
        return DenseTransition((1 - self.report_share) * healthy + self.report_share * broken)

    def _of_accepted(self, chances: FloatArray, output_edges: FloatArray) -> FloatArray:
        """The distribution of accepted reports, from the chances of buckets: one row a value."""
        accepted: FloatArray = chances.sum(axis=1, keepdims=True)
        if self.users is None or self.categorical:
            alike: FloatArray = chances / accepted
            return alike
        of_users = self.client.probabilities(self.users.values, output_edges)
        usual = self.users.histogram @ of_users
        relative = accepted / usual.sum()
        linear: FloatArray = chances / usual.sum() + (1 - relative) * (usual / usual.sum())
        # Far from those users, the linear form may fall below 0.
        return np.asarray(np.maximum(linear, 0.0))

    def kinks(self, output_edges: FloatArray) -> FloatArray:
        """The inputs at which the chances of healthy or of broken clients have kinks."""
        of_client = self.client.mechanism.kinks(self.client.inner_edges(output_edges))
        return np.union1d(self.healthy.kinks(output_edges), of_client)

    @cached_property
    def acceptance(self) -> float:
        """The share of a broken client's reports that is accepted."""
        if self.categorical or self.users is None:
            return 1.0
        domain = np.array([self.output_low, self.output_high])
        chances = self.client.probabilities(self.users.values, domain).sum(axis=1)
        return float(self.users.histogram @ chances)

    @property
    def accepted_share(self) -> float:
        """The share of all clients' reports that is accepted."""
        return 1 - self.share + self.share * self.acceptance

    @property
    def report_share(self) -> float:
        """The share of broken clients' reports among the accepted ones."""
        return self.share * self.acceptance / self.accepted_share

    def decode(self, reports: FloatArray) -> FloatArray:
        """Decode reports as if all clients were healthy."""
        return self.healthy.decode(reports)

    def variance(self, values: FloatArray) -> FloatArray:
        """The variance of a decoded report of each value, as if all clients were healthy."""
        return self.healthy.variance(values)

    @property
    def worst_variance(self) -> float:
        """The largest variance of a decoded report, as if all clients were healthy."""
        return self.healthy.worst_variance

    def _perturb_block(self, values: FloatArray, rng: Generator, out: FloatArray) -> None:
        """Not drawn from: simulations have faults of their own."""
        raise NotImplementedError

    def draw_counts(
        self, values: FloatArray, numbers: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Draw counts by the probabilities of all cells."""
        probabilities = self.cell_probabilities(values, self.grid())
        counts: IntArray = rng.multinomial(numbers, probabilities).sum(axis=0)
        return counts
