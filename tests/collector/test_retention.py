"""Retention: values of old submissions are deleted; counts and used tickets stay."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import func, select

from support.concurrent_devices import DeviceFleet
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.waiting import eventually
from unpoison import Plan, Summary
from unpoison.collector.campaigns import retention, tallies
from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.service import housekeeping
from unpoison.collector.storage import database as database_module
from unpoison.collector.storage.database import Database, database_url
from unpoison.collector.storage.migration import migrate
from unpoison.collector.storage.schema import submissions
from unpoison.collector.storage.schema import tallies as tallies_table

DAY = 86400


@pytest.fixture
def server(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InProcessCollector]:
    monkeypatch.setattr(housekeeping, "FORGET_SECONDS", 0.1)
    monkeypatch.setattr(retention, "ROWS_PER_CALL", 7)
    keys = str(tmp_path / "tickets.keys")
    with in_process_collector(
        tmp_path, database=database, key_file=keys, keep_submissions=2
    ) as collector:
        yield collector


def kept(server: InProcessCollector, campaign: RunningCampaign) -> int:
    """How many submissions still have values."""
    with server.collector.database.reading() as connection:
        mine = submissions.c.campaign == campaign.id
        return int(
            connection.execute(select(func.count(submissions.c.cells)).where(mine)).scalar_one()
        )


def exported(server: InProcessCollector, campaign: RunningCampaign) -> int:
    """How many reports an export holds."""
    archive = zipfile.ZipFile(io.BytesIO(server.operator.download(f"{campaign.path}/export")))
    assert archive.testzip() is None
    return int(pq.read_table(io.BytesIO(archive.read("reports.parquet"))).num_rows)


def test_old_values_are_gone_and_everything_else_stays(server: InProcessCollector) -> None:
    fleet = DeviceFleet(server.create_campaign(), Random(1), most=60)
    fleet.add_devices(40)
    fleet.finish()
    campaign, old = fleet.campaign, list(fleet.devices)
    reports = exported(server, campaign)
    summary = server.operator.download(f"{campaign.path}/summary")
    server.clock.step = DAY
    fleet.add_devices(10)
    fleet.finish()
    later = server.operator.download(f"{campaign.path}/summary")
    assert (kept(server, campaign), later != summary) == (50, True)

    server.clock.step = 2 * DAY + 60
    eventually(lambda: kept(server, campaign) == 10)
    assert server.operator.download(f"{campaign.path}/summary") == later
    assert 0 < exported(server, campaign) < reports
    eventually(lambda: campaign.status()["submissions"] == 50)
    assert campaign.submit(old[0].submission).json == {"status": "accepted"}
    others = {**old[1].submission, "values": [1] * len(old[1].values)}
    assert campaign.submit(others).code == "ticket-used"
    assert campaign.submit(fleet.devices[-1].submission).status == 200
    assert server.operator.download(f"{campaign.path}/summary") == later


@pytest.mark.server
def test_with_no_days_at_all_values_go_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "FORGET_SECONDS", 0.1)
    with in_process_collector(tmp_path, keep_submissions=0) as server:
        campaign = server.create_campaign()
        assert campaign.submit(campaign.enrol_device().body()).status == 200
        eventually(lambda: kept(server, campaign) == 0)
        eventually(lambda: campaign.status()["submissions"] == 1)
        assert (
            Summary.from_bytes(server.operator.download(f"{campaign.path}/summary")).total_users
            == 1
        )


@pytest.mark.parametrize("most", [1, 2**40])
def test_adding_up_keeps_the_summary_to_the_bit(
    database: str, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(tallies, "COMPACT_AT", 3)
    plan = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=100)
    campaign, rng = Campaign.new("A test", plan, now=0), np.random.default_rng(1)
    opened = Database(database_url(database))
    migrate(opened)
    with opened.writing() as connection:
        Campaigns.add(connection, campaign)
        for _ in range(12):
            sparse = rng.random((3, plan.cells)) < 0.01
            Tallies.add(connection, campaign.id, sparse * rng.integers(0, most + 1, sparse.shape))
        before = Tallies.summary(connection, campaign).to_bytes()
        assert Tallies.compact(connection, campaign) == 12
        assert connection.execute(select(func.count(tallies_table.c.id))).scalar_one() == 1
        assert Tallies.summary(connection, campaign).to_bytes() == before
        assert Tallies.compact(connection, campaign) == 0
    opened.close()


@pytest.mark.server
def test_forgotten_cells_are_in_no_file_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "FORGET_SECONDS", 0.1)
    # Some builds of SQLite overwrite by default; the collector must not rely on that.
    off_by_default = ("PRAGMA secure_delete = OFF", *database_module.SQLITE_SETTINGS)
    monkeypatch.setattr(database_module, "SQLITE_SETTINGS", off_by_default)
    categories = [f"category {number}" for number in range(200)]
    plan = {
        "mechanism": "k-rr-integer",
        "epsilon": 1.0,
        "min_epsilon": 0.01,
        "categories": categories,
    }
    with in_process_collector(tmp_path, keep_submissions=2) as server:
        campaign = server.create_campaign(plan)
        devices = [campaign.enrol_device() for _ in range(40)]
        # Long runs of cells, so that no other bytes look like them by chance.
        bodies = [device.body([7 + i % 5] * device.reports) for i, device in enumerate(devices)]
        patterns = {np.array(body["values"], "<u4").tobytes() for body in bodies}
        patterns = {pattern for pattern in patterns if len(pattern) >= 32}
        assert len(patterns) >= 3
        for body in bodies:
            assert campaign.submit(body).status == 200
        assert found_in(tmp_path, patterns) == patterns, "the search would find them"
        server.clock.step = 3 * DAY
        eventually(lambda: kept(server, campaign) == 0)
        eventually(lambda: found_in(tmp_path, patterns) == set())
    assert found_in(tmp_path, patterns) == set()


def found_in(folder: Path, patterns: set[bytes]) -> set[bytes]:
    """Those patterns that are in a file of the folder."""
    contents = [path.read_bytes() for path in folder.glob("reports.db*")]
    return {pattern for pattern in patterns if any(pattern in content for content in contents)}
