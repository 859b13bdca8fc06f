"""Estimates of a running collector: bounded in cost, cached by question, up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.running_collectors import (
    InProcessCollector,
    Reply,
    RunningCampaign,
    in_process_collector,
)
from support.waiting import eventually
from unpoison.collector.service import estimates
from unpoison.demo.fleet import Fleet

ENDLESS = "k-means:rate=0.5,subsets=100000000"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    folder = tmp_path_factory.mktemp("collector")
    with in_process_collector(folder, public=True, estimate_every=1) as server:
        yield server


def reported(server: InProcessCollector, users: int) -> RunningCampaign:
    campaign = server.create_campaign(min_users=users)
    report(server, campaign, users)
    return campaign


def report(server: InProcessCollector, campaign: RunningCampaign, users: int) -> None:
    values, nobody = np.linspace(20, 40, users), np.zeros(users, dtype=bool)
    invites = server.operator.post(f"{campaign.path}/invites", {"count": users})["invites"]
    fleet = Fleet(campaign.plan, values, nobody, "none")
    fleet.report(server.url, campaign.id, invites, lambda done: None)


def ask(
    server: InProcessCollector, campaign: RunningCampaign, query: str = "", token: str | None = None
) -> Reply:
    return server.request("GET", f"{campaign.path}/estimate{query}", token=token)


def made(server: InProcessCollector) -> float:
    lines = server.request("GET", "/metrics").body.decode().splitlines()
    count_line = next(line for line in lines if line.startswith("unpoison_estimate_seconds_count"))
    return float(count_line.split()[1])


def test_spellings_of_one_question_share_one_estimate(server: InProcessCollector) -> None:
    campaign = reported(server, 60)
    first = ask(server, campaign)
    before = made(server)
    for query in ("?method=joint", "?statistic=mean", "?method=joint&statistic=mean"):
        assert ask(server, campaign, query).body == first.body
    assert ask(server, campaign, "?method=emf*").json["method"] == "emf-star"
    ask(server, campaign, "?method=emf-star")
    assert made(server) == before + 1


def test_readers_cannot_choose_expensive_methods(server: InProcessCollector) -> None:
    campaign = reported(server, 60)
    assert ask(server, campaign, f"?method={ENDLESS}").code == "unauthorized"
    assert ask(server, campaign, "?method=trimming:share=0.25", server.token).status == 200


@pytest.mark.parametrize("query", ["method=nothing", "statistic=median", "post_processing=clip"])
def test_what_cannot_be_answered_is_refused_before_anything_is_done(
    server: InProcessCollector, query: str
) -> None:
    campaign = server.create_campaign()
    reply = ask(server, campaign, f"?{query}")
    assert (reply.status, reply.code) == (422, "invalid-request")
    assert reply.json["error"]["field"] == query.partition("=")[0]


def test_an_estimate_that_takes_too_long_is_given_up(
    server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = reported(server, 60)
    monkeypatch.setattr(estimates, "TIMEOUT_SECONDS", 1.0)
    given_up = ask(server, campaign, f"?method={ENDLESS}", server.token)
    assert (given_up.status, given_up.code) == (503, "unavailable")
    monkeypatch.undo()
    assert ask(server, campaign, "?method=ostrich").status == 200


def test_the_last_reports_are_in_the_last_estimate_even_of_a_closed_campaign(
    server: InProcessCollector,
) -> None:
    campaign = reported(server, 60)
    eventually(lambda: [row["users"] for row in campaign.status()["estimates"]] == [60])
    report(server, campaign, 20)
    server.operator.post(f"{campaign.path}/close")
    eventually(lambda: [row["users"] for row in campaign.status()["estimates"]] == [60, 80])


def test_a_campaign_without_new_reports_gets_no_new_estimate(
    server: InProcessCollector, tmp_path: Path
) -> None:
    campaign = reported(server, 60)
    eventually(lambda: len(campaign.status()["estimates"]) == 1)
    for _ in range(3):
        ask(server, campaign)
    server.clock.step += 1
    eventually(lambda: campaign.status()["version"] != "")
    assert len(campaign.status()["estimates"]) == 1
