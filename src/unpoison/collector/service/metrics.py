"""Metrics for Prometheus: counts and durations, never contents."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from unpoison._version import __version__

SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Histogram bounds for durations: a commit takes milliseconds, an estimate up to seconds."""
SIZE_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384)
"""Histogram bounds for requests a transaction: from one device to a gateway's batches."""


class Metrics:
    """The metrics of one server process.

    >>> metrics = Metrics()
    >>> metrics.accepted.inc(3)
    >>> "unpoison_submissions_accepted_total 3.0" in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        # Not the global registry: tests run several collectors in one process.
        registry = self.registry = CollectorRegistry()
        self.accepted = Counter(
            "unpoison_submissions_accepted", "Submissions answered as counted.", registry=registry
        )
        self.enrolments = Counter("unpoison_enrolments", "Tickets given out.", registry=registry)
        self.rejected = Counter(
            "unpoison_rejected", "Requests refused, by cause.", ["cause"], registry=registry
        )
        self.requests = Histogram(
            "unpoison_request_seconds",
            "Time to answer, by route and status.",
            ["route", "status"],
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self.queue = Gauge(
            "unpoison_queue_waiting", "Requests that wait to be stored.", registry=registry
        )
        self.batches = Histogram(
            "unpoison_batch_requests",
            "Requests a transaction.",
            buckets=SIZE_BUCKETS,
            registry=registry,
        )
        self.commits = Histogram(
            "unpoison_commit_seconds",
            "Time a transaction.",
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self.estimates = Histogram(
            "unpoison_estimate_seconds",
            "Time an estimate.",
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )

        build = Gauge(
            "unpoison_build_info",
            "Always 1: the version that runs.",
            ["version"],
            registry=registry,
        )
        build.labels(__version__).set(1)
        ProcessCollector(registry=registry)

    def watch_queue(self, waiting: Callable[[], int]) -> None:
        """Read the queue's length whenever metrics are read."""
        self.queue.set_function(waiting)

    def committed(self, requests: int, seconds: float) -> None:
        """Record a transaction, whether it was committed or failed."""
        self.batches.observe(requests)
        self.commits.observe(seconds)

    def estimated(self, seconds: float) -> None:
        """Record how long an estimate took."""
        self.estimates.observe(seconds)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
