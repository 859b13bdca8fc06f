"""Metrics by campaign, for those who may read estimates: attackers must not see the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from unpoison.collector.campaigns.figures import CampaignFigures, campaign_figures
from unpoison.collector.faults import Fault
from unpoison.collector.service.collector import Collector
from unpoison.collector.service.worker_metrics import server_metrics

NAMES = {
    "users": "Users who have reported.",
    "balance_p_value": "p-value of the test that all groups report alike.",
    "attacker_share": "Share of attackers in the last stored estimate.",
    "nobody_attacks_p_value": "p-value of the hypothesis that nobody attacks.",
    "doubt": "1 if the last stored estimate doubts itself, else 0.",
}
"""Gauges that are numbers of `CampaignFigures`, and what they are."""


class CampaignMetrics:
    """The metrics of campaigns as Prometheus' library collects them.

    They are made anew for every reading, so that those of a deleted campaign are gone.

    >>> figures = CampaignFigures("k3v9x2m4q7w1", "Rides", "open", users=3, balance_p_value=1.0)
    >>> print(CampaignMetrics([figures], now=0).text().decode())  # doctest: +ELLIPSIS
    # HELP ...
    unpoison_campaign_users{campaign="k3v9x2m4q7w1"} 3.0
    ...
    """

    def __init__(self, campaigns: Sequence[CampaignFigures], now: int) -> None:
        self.campaigns, self.now = campaigns, now

    def collect(self) -> Iterator[Metric]:
        """All gauges; a campaign without an estimate is missing in those that need one."""
        info = GaugeMetricFamily(
            "unpoison_campaign_info",
            "Always 1: the name and the state of a campaign.",
            labels=["campaign", "name", "state"],
        )
        for figures in self.campaigns:
            info.add_metric([figures.id, figures.name, figures.state], 1)
        yield info
        for name, description in NAMES.items():
            numbers = {figures.id: getattr(figures, name) for figures in self.campaigns}
            yield _gauge(f"unpoison_campaign_{name}", description, numbers)
        ages = {
            figures.id: max(0, self.now - figures.estimated_at)
            for figures in self.campaigns
            if figures.estimated_at is not None
        }
        description = "Seconds since the last stored estimate was made."
        yield _gauge("unpoison_campaign_estimate_age_seconds", description, ages)

    def text(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


def _gauge(name: str, description: str, numbers: Mapping[str, float | None]) -> Metric:
    gauge = GaugeMetricFamily(name, description, labels=["campaign"])
    for campaign, number in numbers.items():
        if number is not None:
            gauge.add_metric([campaign], number)
    return gauge


async def all_metrics(collector: Collector) -> bytes:
    """The metrics of a server and of its campaigns; without these if the database is gone.

    >>> import asyncio
    >>> from unpoison.collector.settings import Settings
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database:
    ...     text = asyncio.run(all_metrics(Collector(Settings.load(), database, ["a key"])))
    >>> b"unpoison_campaign_users" in text
    True
    """
    own = server_metrics(collector.metrics, collector.role)
    try:
        figures = await collector.read_cache.get("metrics", campaign_figures)
    except Fault:
        return own
    return own + CampaignMetrics(figures, collector.clock.now()).text()
