"""Two servers that share one PostgreSQL database behave as one."""

from __future__ import annotations

import io
import json
import secrets
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Connection, event, select

from support.concurrent_devices import CONNECTIONS, DeviceFleet, DeviceRequest
from support.database_audit import open_database
from support.forked_collectors import CollectorForker, ForkServer
from support.postgres import Cluster
from support.running_collectors import RunningCampaign, RunningCollector
from support.token_holders import key_holder
from support.waiting import eventually, meanwhile
from unpoison import Summary
from unpoison.bench.load import Outcome, fire, post
from unpoison.collector.campaigns import tallies
from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.counters import count_rejections
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.service.signing_keys import KeyFile, SigningKey
from unpoison.collector.storage.rate_buckets import (
    TokenRequest,
    drop_full_buckets,
    take_tokens,
)
from unpoison.collector.storage.schema import rate_limits

TOKEN = "the-token-of-the-operator"
NO_ESTIMATES = 10**9


@dataclass(frozen=True)
class Pair:
    """Two servers, and the database that they share."""

    database: str
    servers: tuple[RunningCollector, RunningCollector]

    def campaign(self, **keys: Any) -> RunningCampaign:
        return self.servers[0].create_campaign(**{"min_users": NO_ESTIMATES, **keys})

    def fleet(self, most: int = 2000) -> DeviceFleet:
        return DeviceFleet(self.campaign(), Random(1), most)

    def fire(self, first: Sequence[bytes], second: Sequence[bytes]) -> list[Outcome]:
        """Send requests to both servers at once, as fast as answers come."""
        ports = [server.port for server in self.servers]
        with ThreadPoolExecutor(2) as threads:
            work = [
                threads.submit(fire, port, requests, None, CONNECTIONS)
                for port, requests in zip(ports, (first, second), strict=True)
            ]
            return [firing.result() for firing in work]

    def fire_all(self, requests: Sequence[bytes]) -> list[Outcome]:
        """Send the same requests to both servers at once."""
        return self.fire(requests, requests)

    def share(self, fleet: DeviceFleet, requests: Sequence[DeviceRequest]) -> None:
        """Send one half of the requests to each server; all must be answered with 200."""
        halves = requests[::2], requests[1::2]
        first, second = ([request.data for request in half] for half in halves)
        outcomes = self.fire(first, second)
        for half, outcome in zip(halves, outcomes, strict=True):
            assert Counter(outcome.statuses) == {200: len(half)}
            fleet.record_answers(half, outcome)


@pytest.fixture(scope="module")
def pair(
    postgres: Cluster, fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    with (
        postgres.database() as database,
        CollectorForker(tmp_path_factory.mktemp("pair"), fork_server) as forker,
    ):
        first, second = (forker.spawn(database, TOKEN) for _ in range(2))
        yield Pair(database, (first, second))


def test_enrolments_at_both_are_balanced_and_numbered_once(pair: Pair) -> None:
    fleet = pair.fleet()
    fleet.add_devices(600)
    pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices])
    stored_rows = fleet.assert_stored(pair.database)
    assert sorted(stored_rows.enrolled.values()) == [200, 200, 200]
    assert len({device.number for device in fleet.devices}) == 600


def test_a_device_that_asks_both_at_once_gets_one_ticket(pair: Pair) -> None:
    fleet = pair.fleet()
    fleet.add_devices(200)
    requests = [fleet.enrolment(device).data for device in fleet.devices]
    first, second = pair.fire_all(requests)
    assert Counter(first.statuses + second.statuses) == {200: 400}
    assert first.answers == second.answers
    assert sum(fleet.assert_stored(pair.database).enrolled.values()) == 200


def test_an_invite_that_two_devices_use_at_once_is_for_one_of_them(pair: Pair) -> None:
    campaign = pair.campaign()
    invites = [campaign.invite() for _ in range(100)]
    wishes = [
        [
            post(f"{campaign.path}/tickets", {"device": secrets.token_hex(32), "invite": invite})
            for invite in invites
        ]
        for _ in range(2)
    ]
    first, second = pair.fire(*wishes)
    both = zip(first.statuses, second.statuses, strict=True)
    assert Counter(tuple(sorted(statuses)) for statuses in both) == {(200, 409): 100}


def test_a_submission_that_comes_to_both_at_once_counts_once(pair: Pair) -> None:
    fleet = pair.fleet()
    fleet.add_devices(300)
    pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices])
    single = [fleet.single(device) for device in fleet.devices[:150]]
    batch = [fleet.batch(fleet.devices[at : at + 10]) for at in range(150, 300, 10)]
    outcomes = pair.fire_all([request.data for request in single + batch])
    for outcome in outcomes:
        assert set(outcome.statuses) == {200}
        fleet.record_answers(single + batch, outcome)
    assert len(fleet.assert_stored(pair.database).cells) == 300


def test_of_two_submissions_for_one_ticket_one_counts(pair: Pair) -> None:
    fleet = pair.fleet()
    fleet.add_devices(100)
    pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices])
    path = f"{fleet.campaign.path}/reports"
    wishes = [
        [
            post(path, {**device.submission, "values": [cell] * len(device.values)})
            for device in fleet.devices
        ]
        for cell in (1, 2)
    ]
    first, second = pair.fire(*wishes)
    both = list(zip(first.statuses, second.statuses, strict=True))
    assert Counter(tuple(sorted(statuses)) for statuses in both) == {(200, 409): 100}
    for member, statuses in zip(fleet.devices, both, strict=True):
        member.values = [1 + statuses.index(200)] * len(member.values)
        member.counted = True
    assert len(fleet.assert_stored(pair.database).cells) == 100


def slices(requests: Sequence[DeviceRequest], count: int) -> Iterator[Sequence[DeviceRequest]]:
    """The requests in so many parts, one after the other."""
    size = -(-len(requests) // count)
    for start in range(0, len(requests), size):
        yield requests[start : start + size]


def test_adding_up_while_both_count_loses_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "COMPACT_AT", 2)
    read = Tallies.summary

    def slowly(connection: Connection, campaign: Campaign) -> Summary:
        summary = read(connection, campaign)
        time.sleep(0.03)
        return summary

    monkeypatch.setattr(Tallies, "summary", staticmethod(slowly))
    fleet = pair.fleet()
    fleet.add_devices(1000)
    pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices])
    users = [0.0]
    with open_database(pair.database) as database:
        with database.reading() as connection:
            campaign = Campaigns.find(connection, fleet.campaign.id)
        assert campaign is not None

        def add_up() -> None:
            with database.writing() as connection:
                Tallies.compact(connection, campaign)
            with database.reading() as connection:
                users.append(Tallies.summary(connection, campaign).total_users)

        with meanwhile(add_up) as repetition:
            for requests in slices([fleet.single(device) for device in fleet.devices], 4):
                pair.share(fleet, requests)
                repetition.wait_for_a_turn()
    assert users == sorted(users), "a reader saw something vanish"
    assert len(fleet.assert_stored(pair.database).cells) == 1000


def test_two_servers_do_not_deadlock(pair: Pair) -> None:
    """Each with requests of all kinds to two campaigns, in the orders that would be worst."""
    fleets = [pair.fleet(), pair.fleet()]
    for fleet in fleets:
        fleet.add_devices(400)
        pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices[:200]])
    first, second = fleets
    enrol = [[fleet.enrolment(device) for device in fleet.devices[200:]] for fleet in fleets]
    submit = [[fleet.single(device) for device in fleet.devices[:200]] for fleet in fleets]
    left = [request for both in zip(enrol[0], submit[1], strict=True) for request in both]
    right = [request for both in zip(enrol[1], submit[0], strict=True) for request in both]
    outcomes = pair.fire(*([request.data for request in requests] for requests in (left, right)))
    for outcome in outcomes:
        assert Counter(outcome.statuses) == {200: 400}
    for outcome, requests in zip(outcomes, (left, right), strict=True):
        first.record_answers(
            requests[::2] if requests is left else requests[1::2], part(outcome, requests is right)
        )
        second.record_answers(
            requests[1::2] if requests is left else requests[::2], part(outcome, requests is left)
        )
    for fleet in fleets:
        fleet.assert_stored(pair.database)


def part(outcome: Outcome, odd: bool) -> Outcome:
    """Every other request."""
    mine = slice(int(odd), None, 2)
    answers, latencies = outcome.answers[mine], outcome.latencies[mine]
    return Outcome(outcome.statuses[mine], answers, latencies, outcome.seconds)


def test_refusals_at_both_are_all_counted(pair: Pair) -> None:
    fleet = pair.fleet()
    fleet.add_devices(60)
    pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices])
    path = f"{fleet.campaign.path}/reports"
    wrong = [post(path, {**device.submission, "values": []}) for device in fleet.devices]
    outside = [
        post(path, {**device.submission, "values": [10**6] * len(device.values)})
        for device in fleet.devices
    ]
    for outcome in pair.fire(wrong + outside, outside + wrong):
        assert Counter(outcome.statuses) == {422: 120}
    causes = [{"cause": name, "count": 120} for name in ("out-of-domain", "wrong-number-of-values")]
    eventually(lambda: fleet.campaign.status()["rejections"] == causes)


def test_refusals_that_are_written_down_in_any_order_do_not_block_one_another(pair: Pair) -> None:
    campaign = pair.campaign().id
    causes = [(campaign, "ticket-used", 1), (campaign, "out-of-domain", 2)]

    def write(rows: list[tuple[str, str, int]]) -> None:
        with open_database(pair.database) as database:
            for _ in range(100):
                with database.writing() as connection:
                    count_rejections(connection, rows)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(write, rows) for rows in (causes, causes[::-1])]:
            done.result()
    expected = [{"cause": cause, "count": 200 * number} for _, cause, number in reversed(causes)]
    status = pair.servers[1].operator.get(f"/v1/campaigns/{campaign}/status")
    assert status["rejections"] == expected


def test_an_export_is_of_one_moment(pair: Pair) -> None:
    fleet = pair.fleet()
    fleet.add_devices(600)
    pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices])
    seen = []

    def export() -> None:
        data = fleet.campaign.server.operator.download(f"{fleet.campaign.path}/export")
        archive = zipfile.ZipFile(io.BytesIO(data))
        campaign_json = json.loads(archive.read("campaign.json"))
        summary = Summary.from_bytes(archive.read("campaign.summary"))
        rows = pq.read_table(io.BytesIO(archive.read("reports.parquet"))).num_rows
        seen.append(
            (campaign_json["submissions"], summary.total_users, campaign_json["reports"], rows)
        )

    with meanwhile(export) as repetition:
        for requests in slices([fleet.single(device) for device in fleet.devices], 4):
            pair.share(fleet, requests)
            repetition.wait_for_a_turn()
    assert len({submissions for submissions, *_ in seen}) > 1, "all were before or after"
    for submissions, users, reports, rows in seen:
        assert (submissions, reports) == (users, rows)


def test_a_change_at_one_is_known_to_the_other(pair: Pair) -> None:
    fleet = pair.fleet(most=10)
    fleet.add_devices(2)
    pair.share(fleet, [fleet.enrolment(device) for device in fleet.devices])
    elsewhere = RunningCampaign(pair.servers[1], fleet.campaign.id, fleet.campaign.plan)
    assert elsewhere.submit(fleet.devices[0].submission).status == 200
    pair.servers[0].operator.post(f"{fleet.campaign.path}/close")
    late = elsewhere.submit(fleet.devices[1].submission)
    assert (late.status, late.code) == (409, "campaign-not-open")
    assert elsewhere.submit(fleet.devices[0].submission).status == 200, "it was counted before"


@pytest.mark.slow
def test_servers_that_start_at_once_make_one_key(tmp_path: Path) -> None:
    for number in range(20):
        file = KeyFile(tmp_path / f"{number}.keys")
        together = threading.Barrier(8)

        def make(file: KeyFile = file, together: threading.Barrier = together) -> list[SigningKey]:
            together.wait()
            return file.load_or_make()

        with ThreadPoolExecutor(8) as threads:
            key_lists = [making.result() for making in [threads.submit(make) for _ in range(8)]]
        assert all(keys == file.load() for keys in key_lists)
    assert not list(tmp_path.glob("*.part"))


def test_a_token_that_is_shown_to_both_at_once_lets_one_device_in(pair: Pair) -> None:
    issuer = key_holder("first")
    campaign = pair.campaign(access="token", issuer=issuer.body())
    tokens = [issuer.token_for(campaign) for _ in range(20)]

    def request(token: str) -> bytes:
        device = {"device": secrets.token_hex(32), "token": token}
        return post(f"{campaign.path}/tickets", json.dumps(device).encode())

    first, second = ([request(token) for token in tokens] for _ in range(2))
    outcomes = pair.fire(first, second)
    statuses = Counter(status for outcome in outcomes for status in outcome.statuses)
    assert statuses == {200: 20, 409: 20}
    eventually(lambda: campaign.status()["enrolled"] == 20)


def test_rate_limits_are_those_of_both(pair: Pair) -> None:
    """Who has used up a limit at one server is refused by the other, and stored as a hash."""
    first, second = pair.servers
    guesses = [
        server.request("GET", "/v1/campaigns", token=secrets.token_hex(32)).status
        for _ in range(25)
        for server in (first, second)
    ]
    # Twenty a minute, and one more for each three seconds that this takes.
    assert set(guesses) == {401, 429}
    assert 20 <= guesses.count(401) < 35
    with open_database(pair.database) as opened, opened.reading() as connection:
        addresses = connection.exec_driver_sql("SELECT address FROM rate_limits").scalars().all()
    assert addresses
    assert all(len(bytes(address)) == 16 for address in addresses)
    assert not any(b"127.0.0.1" in bytes(address) for address in addresses)


def test_a_limit_that_one_server_forgets_while_another_takes_from_it(pair: Pair) -> None:
    """A bucket that is full again may be deleted at the very moment at which it is used."""
    request = TokenRequest("guess", b"address", most=2, seconds_per_token=30.0)
    with open_database(pair.database) as database, open_database(pair.database) as other:
        with database.writing() as connection:
            assert take_tokens(connection, [request], now=1000) == [0.0]

        def forget(*_: object) -> None:
            with other.writing() as connection:
                drop_full_buckets(connection, now=2000)

        with database.writing() as connection:
            # Between the statements of the first server, once: after the row was looked for.
            event.listen(connection, "after_cursor_execute", forget, once=True)
            assert take_tokens(connection, [request] * 3, now=2000) == [0.0, 0.0, 30.0]
        with database.writing() as connection:
            drop_full_buckets(connection, now=3000)
            left = select(rate_limits).where(rate_limits.c.address == request.address)
            assert not connection.execute(left).all()
