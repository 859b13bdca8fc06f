"""The whole protocol on each kind of database, from creating a campaign to deleting it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import func, select

from support.command_line import Command
from support.concurrent_devices import DeviceFleet
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.waiting import eventually
from unpoison import CollectorRefused, Estimate, Plan, Summary
from unpoison.client import Device, Ledger, Policy, Transport
from unpoison.collector.storage import schema

BASELINE = {"mechanism": "k-rr-integer", "epsilon": 1.0, "protocol": "baseline"}


@pytest.fixture
def server(database: str, tmp_path: Path) -> Iterator[InProcessCollector]:
    keys = str(tmp_path / "tickets.keys")
    with in_process_collector(tmp_path, database=database, key_file=keys) as collector:
        yield collector


def state(
    server: InProcessCollector, campaign: RunningCampaign, change: str, **body: Any
) -> dict[str, Any]:
    return server.operator.post(f"{campaign.path}/{change}", body or None)


def test_a_campaign_from_its_creation_to_its_deletion(
    server: InProcessCollector, database: str
) -> None:
    campaign = server.create_campaign(open=False, min_users=30)
    assert state(server, campaign, "open")["state"] == "open"
    fleet = DeviceFleet(campaign, Random(1), most=100)
    fleet.add_devices(60)
    fleet.send([fleet.enrolment(device) for device in fleet.devices])
    half = fleet.devices[:30]
    fleet.send([fleet.single(device) for device in half[:20]])
    with pytest.raises(CollectorRefused, match="estimates begin at 30"):
        server.operator.get(f"{campaign.path}/estimate")
    fleet.send([fleet.batch(fleet.devices[20:])])
    stored_rows = fleet.assert_stored(database)
    assert len(stored_rows.cells) == 60

    estimate = server.request("GET", f"{campaign.path}/estimate", token=server.token)
    assert Estimate.from_json(estimate.body.decode()).to_json() == estimate.body.decode()
    eventually(lambda: len(campaign.status()["estimates"]) > 0)
    status = campaign.status()
    assert status["invites"] == {"issued": 100, "used": 60}
    assert [status[name] for name in ("enrolled", "submissions", "reports")] == [60, 60, 140]
    assert sum(minute["submissions"] for minute in status["activity"]) == 60

    data = server.operator.download(f"{campaign.path}/summary")
    summary = Summary.from_bytes(data)
    assert np.array_equal(summary.counts, stored_rows.counts)
    archive = zipfile.ZipFile(io.BytesIO(server.operator.download(f"{campaign.path}/export")))
    assert archive.read("campaign.summary") == data
    assert Plan.from_json(archive.read("plan.json").decode()) == campaign.plan
    assert json.loads(archive.read("campaign.json"))["submissions"] == 60
    table = pq.read_table(io.BytesIO(archive.read("reports.parquet")))
    counts = np.zeros_like(summary.counts)
    np.add.at(counts, (table["group"].to_numpy(), table["value"].to_numpy()), 1)
    assert np.array_equal(counts, summary.counts)

    assert state(server, campaign, "extend", closes_at="2100-01-01T00:00:00Z")["closes_at"]
    with pytest.raises(CollectorRefused, match="close it first"):
        server.operator.delete(campaign.path)
    assert state(server, campaign, "close")["state"] == "closed"
    assert campaign.submit(fleet.devices[0].submission).status == 200
    server.operator.delete(campaign.path)
    assert server.operator.get("/v1/campaigns") == {"campaigns": [], "next": None}
    with server.collector.database.reading() as connection:
        for table_of in schema.metadata.sorted_tables:
            if table_of.name not in ("operators", "audit", "ticket_keys"):
                rows = connection.execute(select(func.count()).select_from(table_of))
                assert (table_of.name, rows.scalar_one()) == (table_of.name, 0)


def test_a_device_reports_with_the_client(server: InProcessCollector, tmp_path: Path) -> None:
    campaign = server.create_campaign()
    policy = Policy(low=0, high=100)
    with Ledger(tmp_path / "ledger.db") as ledger, Transport(server.url) as transport:
        device = Device(server.url, policy, ledger, transport)
        receipts = [device.report(campaign.id, 42.0, campaign.invite()) for _ in range(2)]
    assert [receipt.already for receipt in receipts] == [False, True]
    eventually(lambda: campaign.status()["submissions"] == 1)


def test_both_groups_of_the_baseline(server: InProcessCollector) -> None:
    plan = {**BASELINE, "categories": ["tea", "coffee", "milk"]}
    campaign = server.create_campaign(plan)
    for cells in ([0, 1], [2, 2]):
        device = campaign.enrol_device()
        assert len(device.ticket["groups"]) == 2
        assert campaign.submit(device.body(cells)).status == 200
    eventually(lambda: campaign.status()["submissions"] == 2)
    summary = Summary.from_bytes(server.operator.download(f"{campaign.path}/summary"))
    assert summary.counts.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert server.operator.get("/v1/campaigns")["campaigns"][0]["submissions"] == 2


@pytest.mark.parametrize("name", ["%00", "a%00b", "%C3%BC", "%F0%9F%8D%B5", "x" * 300, "'; --"])
def test_what_cannot_be_a_campaign_is_none(server: InProcessCollector, name: str) -> None:
    path = f"/v1/campaigns/{name.replace(' ', '%20')}"
    assert server.request("GET", path).status == 404
    assert server.request("GET", f"{path}/status", token=server.token).status == 404
    body = {"ticket": "a", "device": "ab" * 32, "values": [1]}
    assert server.post(f"{path}/reports", body).status == 404
    assert server.post(f"{path}/close", None, token=server.token).status == 404


def test_text_comes_back_as_it_was_given(server: InProcessCollector) -> None:
    name = "Tee & <b>Kaffee</b> 'or' 1=1; -- \N{TEACUP WITHOUT HANDLE}"
    plan = {"mechanism": "k-rr-integer", "epsilon": 1.0, "categories": ["a\x00b", "ü\u2028", "%s"]}
    made = server.operator.post("/v1/campaigns", {"name": name, "plan": plan})
    description = server.operator.get(f"/v1/campaigns/{made['id']}")
    assert (description["name"], description["plan"]["categories"]) == (name, plan["categories"])


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--check"], ["--new-token"]])
def test_a_database_that_is_not_there_is_told_in_one_line(
    tmp_path: Path, unpoison: Command, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for database in ("postgresql://ada:lovelace@127.0.0.1:1/reports", "no/folder/reports.db"):
        said = unpoison.refused("serve", "--database", database, "--port", "0", *words)
        assert said.startswith("unpoison: database must be ")
        assert "lovelace" not in said
