"""Selective reporting: groups that report unlike one another are told everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.stored_reports import store_reports
from unpoison import Plan, Summary, simulate

PLAN = {
    **{"mechanism": "piecewise-integer", "epsilon": 1.0, "min_epsilon": 0.25},
    "low": 0,
    "high": 100,
}
ENROLLED = [1500, 1500, 1500]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("balance"), estimate_every=3600) as server:
        yield server


def honest_reports(users: int = 3300) -> Summary:
    """As many users in each of the three groups, nobody of whom attacks."""
    values = 100 * np.random.default_rng(1).beta(2, 5, users)
    return simulate(Plan.from_dict(PLAN), values, rng=np.random.default_rng(2)).summary


def fishing_reports() -> Summary:
    """The same, and 400 attackers who report the largest cell in the first group alone."""
    honest = honest_reports()
    counts = honest.counts.copy()
    counts[0, -1] += 400
    return Summary(honest.plan, counts, honest.sums)


def campaign_with(server: InProcessCollector, summary: Summary) -> RunningCampaign:
    campaign = server.create_campaign(PLAN)
    store_reports(server, campaign, summary, ENROLLED)
    return campaign


def test_status_compares_those_who_reported_with_those_who_enrolled(
    server: InProcessCollector,
) -> None:
    alike = campaign_with(server, honest_reports()).status()["balance"]
    assert alike == {"p_value": pytest.approx(1.0), "broken": False}
    unlike = campaign_with(server, fishing_reports()).status()["balance"]
    assert unlike["broken"]
    assert unlike["p_value"] < 1e-9


def test_the_metrics_tell_the_balance_to_those_who_hold_a_token(
    server: InProcessCollector,
) -> None:
    unlike = campaign_with(server, fishing_reports())
    metrics = server.request("GET", "/metrics", token=server.token).body.decode()
    name = "unpoison_campaign_balance_p_value"
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line.startswith(name))
    assert float(lines[f'{name}{{campaign="{unlike.id}"}}']) < 1e-9
    assert name not in server.request("GET", "/metrics").body.decode()


def test_the_verdict_tells_it_and_uses_how_many_enrolled(server: InProcessCollector) -> None:
    """The same reports: of equally many who enrolled they are suspicious, of unequal ones not."""
    summary = fishing_reports()
    unlike = campaign_with(server, summary)
    answer = server.operator.get(f"{unlike.path}/estimate?method=joint")
    assert answer["fit"]["group_sizes_p_value"] < 1e-9
    assert answer["fit"]["doubt"]
    assert "Some groups have more users than their share" in answer["verdict"]
    in_proportion = server.create_campaign(PLAN)
    enrolled = [round(1.25 * users) for users in np.asarray(summary.users)]
    store_reports(server, in_proportion, summary, enrolled)
    answer = server.operator.get(f"{in_proportion.path}/estimate?method=joint")
    assert answer["fit"]["group_sizes_p_value"] > 0.5
    assert "more users than their share" not in answer["verdict"]


def test_a_campaign_of_tiers_is_estimated_though_nobody_enrolled_in_one(
    server: InProcessCollector,
) -> None:
    plan = {**PLAN, "tiers": [{"epsilon": 0.5, "min_epsilon": 0.25}]}
    campaign = server.create_campaign(plan)
    values = 100 * np.random.default_rng(1).beta(2, 5, 900)
    run = simulate(campaign.plan, values, rng=np.random.default_rng(2), budgets=np.ones(900))
    store_reports(server, campaign, run.summary)
    assert campaign.status()["balance"]["p_value"] == 1.0
    assert server.operator.get(f"{campaign.path}/estimate")["users"] == 900
