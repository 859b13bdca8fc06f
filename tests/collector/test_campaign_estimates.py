"""Estimates of a running collector: bounded in cost, one for each question, none missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.running_collectors import CampaignFace, Here, Reply, collector_here, eventually
from unpoison.collector.service import estimates as analysis
from unpoison.demo.fleet import Fleet

ENDLESS = "k-means:rate=0.5,subsets=100000000"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    folder = tmp_path_factory.mktemp("collector")
    with collector_here(folder, public=True, estimate_every=1) as here:
        yield here


def reported(here: Here, users: int) -> CampaignFace:
    campaign = here.campaign(min_users=users)
    report(here, campaign, users)
    return campaign


def report(here: Here, campaign: CampaignFace, users: int) -> None:
    values, nobody = np.linspace(20, 40, users), np.zeros(users, dtype=bool)
    invites = here.operator.post(f"{campaign.path}/invites", {"count": users})["invites"]
    fleet = Fleet(campaign.plan, values, nobody, "none")
    fleet.report(here.url, campaign.id, invites, lambda done: None)


def ask(here: Here, campaign: CampaignFace, query: str = "", token: str | None = None) -> Reply:
    return here.ask("GET", f"{campaign.path}/estimate{query}", token=token)


def made(here: Here) -> float:
    lines = here.ask("GET", "/metrics").body.decode().splitlines()
    found = next(line for line in lines if line.startswith("unpoison_estimate_seconds_count"))
    return float(found.split()[1])


def test_one_question_has_one_answer_however_it_is_spelt(here: Here) -> None:
    campaign = reported(here, 60)
    first = ask(here, campaign)
    before = made(here)
    for query in ("?method=joint", "?statistic=mean", "?method=joint&statistic=mean"):
        assert ask(here, campaign, query).body == first.body
    assert ask(here, campaign, "?method=emf*").json["method"] == "emf-star"
    ask(here, campaign, "?method=emf-star")
    assert made(here) == before + 1


def test_whoever_may_only_read_has_no_say_in_the_cost(here: Here) -> None:
    campaign = reported(here, 60)
    assert ask(here, campaign, f"?method={ENDLESS}").code == "unauthorized"
    assert ask(here, campaign, "?method=trimming:share=0.25", here.token).status == 200


@pytest.mark.parametrize("query", ["method=nothing", "statistic=median", "post_processing=clip"])
def test_what_cannot_be_answered_is_refused_before_anything_is_done(here: Here, query: str) -> None:
    campaign = here.campaign()
    reply = ask(here, campaign, f"?{query}")
    assert (reply.status, reply.code) == (422, "invalid-request")
    assert reply.json["error"]["field"] == query.partition("=")[0]


def test_an_estimate_that_takes_too_long_is_given_up(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = reported(here, 60)
    monkeypatch.setattr(analysis, "MOST_SECONDS", 5.0)
    given_up = ask(here, campaign, f"?method={ENDLESS}", here.token)
    assert (given_up.status, given_up.code) == (503, "unavailable")
    monkeypatch.undo()
    assert ask(here, campaign, "?method=ostrich").status == 200


def test_the_last_reports_are_in_the_last_estimate_even_of_a_closed_campaign(here: Here) -> None:
    campaign = reported(here, 60)
    eventually(lambda: [each["users"] for each in campaign.status()["estimates"]] == [60])
    report(here, campaign, 20)
    here.operator.post(f"{campaign.path}/close")
    eventually(lambda: [each["users"] for each in campaign.status()["estimates"]] == [60, 80])


def test_a_campaign_without_news_gets_no_new_line(here: Here, tmp_path: Path) -> None:
    campaign = reported(here, 60)
    eventually(lambda: len(campaign.status()["estimates"]) == 1)
    for _ in range(3):
        ask(here, campaign)
    here.clock.step += 1
    eventually(lambda: campaign.status()["version"] != "")
    assert len(campaign.status()["estimates"]) == 1
