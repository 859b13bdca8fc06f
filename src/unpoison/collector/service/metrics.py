"""What Prometheus reads: how much, how fast, how long; never what."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384)


class Metrics:
    """The metrics of one server.

    >>> metrics = Metrics()
    >>> metrics.accepted.inc(3)
    >>> "unpoison_submissions_accepted_total 3.0" in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        own = self.registry = CollectorRegistry()
        self.accepted = Counter(
            "unpoison_submissions_accepted", "Submissions answered as counted.", registry=own
        )
        self.enrolments = Counter("unpoison_enrolments", "Tickets given out.", registry=own)
        self.rejected = Counter(
            "unpoison_rejected", "Requests refused, by cause.", ["cause"], registry=own
        )
        self.requests = Histogram(
            "unpoison_request_seconds",
            "Time to answer, by route and status.",
            ["route", "status"],
            buckets=SECONDS,
            registry=own,
        )
        self.queue = Gauge(
            "unpoison_queue_waiting", "Requests that wait to be stored.", registry=own
        )
        self.batches = Histogram(
            "unpoison_batch_requests", "Requests a transaction.", buckets=SIZES, registry=own
        )
        self.commits = Histogram(
            "unpoison_commit_seconds", "Time a transaction.", buckets=SECONDS, registry=own
        )
        self.estimates = Histogram(
            "unpoison_estimate_seconds", "Time an estimate.", buckets=SECONDS, registry=own
        )

    def watch_queue(self, waiting: Callable[[], int]) -> None:
        """Ask for the queue's length whenever metrics are read."""
        self.queue.set_function(waiting)

    def committed(self, requests: int, seconds: float) -> None:
        """One transaction was tried."""
        self.batches.observe(requests)
        self.commits.observe(seconds)

    def estimated(self, seconds: float) -> None:
        """One estimate was made."""
        self.estimates.observe(seconds)

    def text(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)
