"""Campaigns of a running collector: states, counts, estimates and export."""

from __future__ import annotations

import io
import secrets
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.running_collectors import (
    SMALL_PLAN,
    InProcessCollector,
    RunningCampaign,
    in_process_collector,
)
from support.waiting import eventually
from unpoison import Plan, Summary, estimate, summarise
from unpoison.demo.fleet import Fleet
from unpoison.errors import CollectorRefused

TIERED = {**SMALL_PLAN, "tiers": [{"epsilon": 0.5, "min_epsilon": 0.25}]}
BASELINE = {**SMALL_PLAN, "protocol": "baseline"}
DRINKS = {
    "mechanism": "k-rr",
    "epsilon": 1.0,
    "min_epsilon": 0.5,
    "categories": ["tea", "<i>coffee</i>"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    # Tests count estimates: none that the collector makes by itself may come between them.
    folder = tmp_path_factory.mktemp("collector")
    with in_process_collector(folder, estimate_every=86400) as server:
        yield server


def soon(seconds: int = 3600) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def change(campaign: RunningCampaign, what: str, body: Any = None) -> Any:
    return campaign.server.operator.post(f"{campaign.path}/{what}", body)


def refusal(campaign: RunningCampaign, what: str, body: Any = None) -> str:
    with pytest.raises(CollectorRefused) as caught:
        change(campaign, what, body)
    return caught.value.code


def summary_of(campaign: RunningCampaign) -> Summary:
    return Summary.from_bytes(campaign.server.operator.download(f"{campaign.path}/summary"))


def test_a_campaign_goes_through_its_states(server: InProcessCollector) -> None:
    campaign = server.create_campaign(open=False)
    invite, device = campaign.invite(), secrets.token_hex(32)
    assert refusal(campaign, "close") == "wrong-state"
    assert campaign.request_ticket(device=device, invite=invite).code == "campaign-not-open"
    assert change(campaign, "open")["state"] == "open"
    assert campaign.request_ticket(device=device, invite=invite).status == 200
    with pytest.raises(CollectorRefused, match="wrong-state"):
        server.operator.delete(campaign.path)
    assert change(campaign, "close")["state"] == "closed"
    assert campaign.request_ticket(device=device, invite=invite).code == "campaign-not-open"
    assert change(campaign, "open")["state"] == "open"
    assert campaign.request_ticket(device=device, invite=invite).status == 200
    change(campaign, "close")
    server.operator.delete(campaign.path)
    assert server.request("GET", campaign.path).code == "not-found"


def test_the_end_of_a_campaign_closes_it(server: InProcessCollector) -> None:
    campaign = server.create_campaign(closes_at=soon())
    assert campaign.enrol_device()
    server.clock.step = 7200
    try:
        eventually(lambda: campaign.status()["state"] == "closed")
        assert refusal(campaign, "open") == "wrong-state"
        assert refusal(campaign, "extend", {"closes_at": soon()}) == "invalid-request"
        assert change(campaign, "extend", {"closes_at": soon(10**5)})["state"] == "closed"
        assert change(campaign, "open")["state"] == "open"
    finally:
        server.clock.step = 0


def test_a_campaign_cannot_end_before_it_begins(server: InProcessCollector) -> None:
    body = {"name": "Late", "plan": SMALL_PLAN, "closes_at": soon(-60)}
    reply = server.post("/v1/campaigns", body, token=server.token)
    assert (reply.status, reply.code, reply.json["error"]["field"]) == (
        422,
        "invalid-request",
        "closes_at",
    )


def test_a_plan_for_simulation_becomes_one_for_devices(server: InProcessCollector) -> None:
    body = {"name": "Drinks", "plan": DRINKS}
    made = server.post("/v1/campaigns", body, token=server.token)
    assert made.status == 201
    assert made.json["plan"]["mechanism"] == "k-rr-integer"
    assert "k-rr became k-rr-integer" in made.json["notice"]
    exact = {**DRINKS, "mechanism": "k-rr-integer"}
    again = server.post("/v1/campaigns", {**body, "plan": exact}, token=server.token)
    assert again.json["notice"] is None
    assert again.json["fingerprint"] == made.json["fingerprint"]


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        ({**SMALL_PLAN, "low": 200}, "plan.low"),
        ({**SMALL_PLAN, "epsilom": 1}, "plan"),
        ({**SMALL_PLAN, "epsilon": -1}, "plan.epsilon"),
        ({**SMALL_PLAN, "cells": 2**20}, "plan"),
        ({**DRINKS, "categories": ["\ud800", "b"]}, "plan"),
        ({**SMALL_PLAN, "epsilon": 8.0, "min_epsilon": 1e-4}, "plan"),
    ],
)
def test_a_plan_that_cannot_be_used_is_explained(
    server: InProcessCollector, plan: dict[str, Any], field: str
) -> None:
    reply = server.post("/v1/campaigns", {"name": "Bad", "plan": plan}, token=server.token)
    assert (reply.status, reply.code) == (422, "invalid-plan")
    assert reply.json["error"]["field"] == field


def test_counts_are_those_of_the_reports_that_were_sent(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    rng, sent = np.random.default_rng(1), []
    for _ in range(30):
        device = campaign.enrol_device()
        values = rng.integers(0, campaign.plan.cells, device.reports).tolist()
        assert campaign.submit(device.body(values)).status == 200
        sent.append((device.group, values))
    groups = np.concatenate([np.full(len(values), group) for group, values in sent])
    cells = np.concatenate([values for _, values in sent])
    expected = summarise({"group": groups, "value": cells}, campaign.plan)
    assert summary_of(campaign) == expected
    eventually(lambda: campaign.status()["reports"] == len(cells))
    assert (expected + summary_of(campaign)).total_users == 60


def test_a_batch_has_a_result_for_each_submission(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    first, second, third = (campaign.enrol_device() for _ in range(3))
    forged = {**first.body(), "ticket": "forged"}
    submissions = [
        first.body(),
        forged,
        second.body([-1] * second.reports),
        first.body(),
        first.body([8] * first.reports),
        third.body(),
        third.body([7] * (third.reports + 1)),
    ]
    reply = server.post(f"{campaign.path}/reports/batch", {"submissions": submissions})
    assert reply.status == 200
    outcomes = [
        result.get("error", {}).get("code", result["status"]) for result in reply.json["results"]
    ]
    assert outcomes == [
        "accepted",
        "invalid-ticket",
        "out-of-domain",
        "accepted",
        "ticket-used",
        "accepted",
        "wrong-number-of-values",
    ]
    assert summary_of(campaign).total_users == 2
    assert server.post(f"{campaign.path}/reports/batch", {"submissions": []}).json == {
        "results": []
    }


@pytest.mark.parametrize("plan", [TIERED, BASELINE], ids=["tiers", "baseline"])
def test_tiers_and_the_baseline_are_collected(
    server: InProcessCollector, plan: dict[str, Any]
) -> None:
    campaign = server.create_campaign(plan)
    tiers = len(campaign.plan.all_tiers)
    for number in range(8):
        device = campaign.enrol_device(tier=number % tiers)
        assert device.ticket["tier"] == number % tiers
        assert campaign.submit(device.body()).status == 200
    assert summary_of(campaign).total_users == 8
    eventually(lambda: campaign.status()["submissions"] == 8)
    assert campaign.status()["enrolled"] == 8
    listed = server.operator.get("/v1/campaigns")["campaigns"]
    assert next(entry["enrolled"] for entry in listed if entry["id"] == campaign.id) == 8
    assert campaign.request_ticket(device="ab" * 32, invite=campaign.invite(), tier=tiers).code == (
        "unknown-tier"
    )


def test_an_estimate_comes_after_enough_users_and_is_kept(server: InProcessCollector) -> None:
    campaign = server.create_campaign(min_users=200)
    path = f"{campaign.path}/estimate"
    report(server, campaign, 150)
    assert server.request("GET", path, token=server.token).code == "not-enough-users"
    report(server, campaign, 150)
    first = server.request("GET", path, token=server.token)
    made = estimates_made(server)
    assert first.status == 200
    assert first.json == estimate(summary_of(campaign)).to_dict()
    assert server.request("GET", path, token=server.token).body == first.body
    assert estimates_made(server) == made
    report(server, campaign, 10)
    again = server.request("GET", path, token=server.token)
    assert again.json["users"] == 310
    assert estimates_made(server) == made + 1
    history = campaign.status()["estimates"]
    eventually(lambda: len(campaign.status()["estimates"]) == 2)
    assert history == [] or history[0]["users"] == 300


def test_any_method_can_be_asked_for(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    report(server, campaign, 120)
    path = f"{campaign.path}/estimate"
    plain = server.request("GET", f"{path}?method=ostrich", token=server.token)
    assert plain.json["method"] == "ostrich"
    spread = server.request(
        "GET", f"{path}?method=emf-star&statistic=distribution", token=server.token
    )
    assert spread.json["distribution"]
    wrong = server.request("GET", f"{path}?method=ostrhic", token=server.token)
    assert (wrong.status, wrong.code) == (422, "invalid-request")
    assert "ostrich" in wrong.json["error"]["message"]


def report(server: InProcessCollector, campaign: RunningCampaign, users: int) -> None:
    rng = np.random.default_rng(users)
    values, nobody = rng.uniform(20, 40, users), np.zeros(users, dtype=bool)
    invites = server.operator.post(f"{campaign.path}/invites", {"count": users})["invites"]
    Fleet(campaign.plan, values, nobody, "none").report(
        server.url, campaign.id, invites, lambda done: None
    )


def estimates_made(server: InProcessCollector) -> float:
    lines = server.request("GET", "/metrics").body.decode().splitlines()
    count_line = next(line for line in lines if line.startswith("unpoison_estimate_seconds_count"))
    return float(count_line.split()[1])


def test_an_export_has_everything(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    for _ in range(5):
        assert campaign.submit(campaign.enrol_device().body()).status == 200
    archive = zipfile.ZipFile(io.BytesIO(server.operator.download(f"{campaign.path}/export")))
    plan = Plan.from_json(archive.read("plan.json").decode())
    assert plan == campaign.plan
    reports = pq.read_table(io.BytesIO(archive.read("reports.parquet")))
    columns = {name: reports[name].to_numpy() for name in ("group", "value")}
    assert summarise(columns, plan) == Summary.from_bytes(archive.read("campaign.summary"))


def test_status_is_sent_only_when_it_has_changed(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    path = f"{campaign.path}/status"
    first = server.request("GET", path, token=server.token)
    same = {"If-None-Match": first.headers["etag"]}
    assert server.request("GET", path, token=server.token, headers=same).status == 304
    campaign.enrol_device()
    eventually(lambda: server.request("GET", path, token=server.token, headers=same).status == 200)


@pytest.mark.server
def test_a_summary_is_no_secret_of_a_public_collector(tmp_path: Path) -> None:
    with in_process_collector(tmp_path, public=True) as server:
        campaign = server.create_campaign()
        assert server.request("GET", f"{campaign.path}/summary").status == 200
        assert server.request("GET", "/v1/campaigns").status == 200
        assert server.request("GET", f"{campaign.path}/export").code == "unauthorized"
        assert server.request("POST", f"{campaign.path}/close").code == "unauthorized"
