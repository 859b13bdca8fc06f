"""Rate limits by address: enrolments in open campaigns, and wrong invites and tokens."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.raw_http import assert_nothing_counted, assert_refused, stored_counts
from support.running_collectors import (
    InProcessCollector,
    Reply,
    RunningCampaign,
    in_process_collector,
)
from unpoison.collector.clock import Clock
from unpoison.collector.faults import Fault
from unpoison.collector.service import rate_limits as limits

HOUR = 3600
START = 1000.0
"""What the steady clock says, which stands still so that no limit refills by itself."""
Guess = Callable[[RunningCampaign], Reply]
PROXIED = {"trusted_proxies": ["127.0.0.1"]}


class HandClock(Clock):
    """A steady clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def steady(self) -> float:
        return self.at


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InProcessCollector]:
    """Three enrolments an hour, six wrong guesses a minute; a proxy says who asks."""
    few = {"enrolments_per_hour": 3, "guesses_per_minute": 6}
    with in_process_collector(tmp_path, **few, **PROXIED) as running:
        running.clock.stopped_at = START
        yield running


def enrol(campaign: RunningCampaign, address: str, **keys: object) -> Reply:
    body = {"device": secrets.token_hex(32), **keys}
    headers = {"X-Forwarded-For": address}
    return campaign.server.post(f"{campaign.path}/tickets", body, headers=headers)


def waits(reply: Reply, most: int) -> int:
    """The refusal of whoever asks too often, and how long it is to wait."""
    assert_refused(reply, 429, "rate-limited")
    seconds = int(reply.headers["retry-after"])
    assert 0 < seconds <= most
    return seconds


def later(server: InProcessCollector, seconds: float) -> None:
    """Set both clocks to so many seconds after the start; the steady one stands still there."""
    server.clock.stopped_at = START + seconds
    server.clock.step = math.ceil(seconds)


def test_an_address_enrols_so_many_devices_in_open_campaigns(server: InProcessCollector) -> None:
    campaign, other = server.create_campaign(access="open"), server.create_campaign(access="open")
    for _ in range(2):
        assert enrol(campaign, "192.0.2.1").status == 200
    assert enrol(other, "192.0.2.1").status == 200
    with assert_nothing_counted(campaign), assert_nothing_counted(other):
        assert waits(enrol(campaign, "192.0.2.1"), HOUR // 3) > 1000
        waits(enrol(other, "192.0.2.1"), HOUR // 3)
    assert enrol(campaign, "192.0.2.2").status == 200
    assert stored_counts(campaign).enrolled == 3


def test_enrolments_with_invites_are_not_limited_by_address(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    for _ in range(5):
        assert enrol(campaign, "192.0.2.1", invite=campaign.invite()).status == 200


def test_an_ipv6_network_counts_as_one_address(server: InProcessCollector) -> None:
    campaign = server.create_campaign(access="open")
    for last in ("1", "2", "ffff:ffff:ffff:ffff"):
        mine = f"2001:db8:0:1:{last}" if ":" in last else f"2001:db8:0:1::{last}"
        assert enrol(campaign, mine).status == 200
    with assert_nothing_counted(campaign):
        waits(enrol(campaign, "2001:db8:0:1:1234:5678:9abc:def0"), HOUR // 3)
    assert enrol(campaign, "2001:db8:0:2::1").status == 200


def test_an_ipv4_address_mapped_to_ipv6_is_the_same_address(server: InProcessCollector) -> None:
    campaign = server.create_campaign(access="open")
    for address in ("192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201"):
        assert enrol(campaign, address).status == 200
    waits(enrol(campaign, "192.0.2.1"), HOUR // 3)
    assert enrol(campaign, "::ffff:192.0.2.2").status == 200


def test_only_the_address_that_the_proxy_saw_counts(
    server: InProcessCollector,
) -> None:
    campaign = server.create_campaign(access="open")
    for number in range(3):
        assert enrol(campaign, f"198.51.100.{number}, 192.0.2.1").status == 200
    waits(enrol(campaign, "198.51.100.3, 192.0.2.1"), HOUR // 3)


@pytest.mark.server
def test_without_a_trusted_proxy_forwarded_addresses_are_ignored(tmp_path: Path) -> None:
    with in_process_collector(tmp_path, enrolments_per_hour=2) as server:
        server.clock.stopped_at = START
        campaign = server.create_campaign(access="open")
        for number in range(2):
            assert enrol(campaign, f"192.0.2.{number}").status == 200
        waits(enrol(campaign, "192.0.2.3"), HOUR // 2)
        assert stored_counts(campaign).enrolled == 2


def test_limits_refill_by_the_steady_clock_and_not_by_the_wall_clock(
    server: InProcessCollector,
) -> None:
    campaign = server.create_campaign(access="open")
    for _ in range(3):
        assert enrol(campaign, "192.0.2.1").status == 200
    server.clock.step = 10 * HOUR
    waits(enrol(campaign, "192.0.2.1"), HOUR // 3)
    later(server, HOUR / 3)
    assert enrol(campaign, "192.0.2.1").status == 200
    waits(enrol(campaign, "192.0.2.1"), HOUR // 3)
    later(server, 100 * HOUR)
    assert [enrol(campaign, "192.0.2.1").status for _ in range(4)] == [200, 200, 200, 429]


def test_a_bucket_refills_steadily_up_to_its_size() -> None:
    clock = HandClock()
    limit = limits.RateLimit(most=4, seconds=60, clock=clock)
    for _ in range(4):
        limit.take("192.0.2.1")
    assert limit.wait("192.0.2.1") == pytest.approx(15)
    clock.at += 14.9
    with pytest.raises(Fault) as caught:
        limit.take("192.0.2.1")
    assert (caught.value.code, caught.value.retry_after) == ("rate-limited", 1)
    clock.at += 0.2
    limit.take("192.0.2.1")
    clock.at += 1e6
    for _ in range(4):
        limit.take("192.0.2.1")
    assert limit.wait("192.0.2.1") > 0


def test_the_number_of_remembered_addresses_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_ADDRESSES", 100)
    limit = limits.RateLimit(most=1, seconds=60, clock=HandClock())
    for number in range(150):
        limit.take(f"2001:db8:0:{number:x}::1")
    assert len(limit.buckets) == 100
    assert limit.wait("2001:db8:0:95::") > 0


def guess_invite(campaign: RunningCampaign) -> Reply:
    return enrol(campaign, "192.0.2.1", invite=secrets.token_hex(16))


def guess_token(campaign: RunningCampaign) -> Reply:
    headers = {"X-Forwarded-For": "192.0.2.1"}
    token = secrets.token_hex(32)
    return campaign.server.request("GET", f"{campaign.path}/status", headers=headers, token=token)


GUESSES: dict[Guess, tuple[int, str]] = {
    guess_invite: (403, "invalid-invite"),
    guess_token: (401, "unauthorized"),
}


@pytest.mark.parametrize("guess", GUESSES)
def test_fast_guessing_is_rate_limited(server: InProcessCollector, guess: Guess) -> None:
    campaign = server.create_campaign()
    campaign.invite()
    with assert_nothing_counted(campaign):
        for _ in range(6):
            assert_refused(guess(campaign), *GUESSES[guess])
        for _ in range(3):
            waits(guess(campaign), 10)


def test_a_right_invite_is_taken_from_an_address_that_has_guessed(
    server: InProcessCollector,
) -> None:
    """Whoever shares an address with an honest device cannot lock it out."""
    campaign, other = server.create_campaign(), server.create_campaign()
    invite, foreign = campaign.invite(), other.invite()
    for _ in range(6):
        guess_invite(campaign)
    waits(guess_invite(campaign), 10)
    with assert_nothing_counted(campaign):
        waits(enrol(campaign, "192.0.2.1", invite=foreign), 10)
        waits(enrol(campaign, "192.0.2.1"), 10)
    assert enrol(campaign, "192.0.2.1", invite=invite).status == 200
    assert_refused(enrol(campaign, "192.0.2.1", invite=invite), 409, "invite-used")
    waits(guess_invite(campaign), 10)
    assert stored_counts(campaign).enrolled == 1


def test_wrong_invites_do_not_close_open_campaigns(server: InProcessCollector) -> None:
    campaign, invited = server.create_campaign(access="open"), server.create_campaign()
    for _ in range(8):
        guess_invite(invited)
    assert enrol(campaign, "192.0.2.1").status == 200


@pytest.mark.server
@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
@pytest.mark.parametrize("proxies", [[], ["198.51.100.1"]], ids=["none", "another"])
def test_a_proxy_that_is_not_believed_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, header: str, proxies: list[str]
) -> None:
    with in_process_collector(tmp_path, trusted_proxies=proxies) as server:
        assert server.request("GET", "/healthz").status == 200
        assert not caplog.records
        for _ in range(3):
            server.request("GET", "/healthz", headers={header: "for=192.0.2.1"})
    (warning,) = caplog.records
    assert "trusted_proxies" in warning.getMessage()
    assert "127.0.0.1" not in warning.getMessage()


def test_a_trusted_proxy_is_not_warned_of(
    server: InProcessCollector, caplog: pytest.LogCaptureFixture
) -> None:
    server.request("GET", "/healthz", headers={"X-Forwarded-For": "192.0.2.1"})
    assert not caplog.records


def test_guesses_from_the_operators_address_do_not_lock_the_operator_out(
    server: InProcessCollector,
) -> None:
    """Whoever shares the operator's address guesses in vain, and in nobody's way."""
    campaign, mine = server.create_campaign(), {"X-Forwarded-For": "192.0.2.1"}
    for _ in range(10):
        guess_token(campaign)
    waits(guess_token(campaign), 10)
    path = f"{campaign.path}/status"
    assert server.request("GET", path, headers=mine, token=server.token).status == 200
    assert enrol(campaign, "192.0.2.1", invite=campaign.invite()).status == 200


def test_refused_guesses_neither_extend_nor_shorten_the_wait(server: InProcessCollector) -> None:
    """Those who wait in vain wait no longer for it, and get one guess for each ten seconds."""
    campaign = server.create_campaign()
    for _ in range(6):
        guess_invite(campaign)
    for _ in range(20):
        waits(guess_invite(campaign), 10)
    for turn in (1, 2, 3):
        later(server, 10 * turn)
        assert_refused(guess_invite(campaign), 403, "invalid-invite")
        waits(guess_invite(campaign), 10)


def test_wrong_tickets_are_not_rate_limited(server: InProcessCollector) -> None:
    """They cannot be guessed, and a gateway may bring many that are no longer valid."""
    campaign = server.create_campaign()
    device, mine = campaign.enrol_device(), {"X-Forwarded-For": "192.0.2.1"}
    forged = {**device.body(), "ticket": secrets.token_hex(64)}
    with assert_nothing_counted(campaign):
        for _ in range(20):
            assert_refused(campaign.submit(forged, headers=mine), 403, "invalid-ticket")
    for _ in range(10):
        guess_invite(campaign)
    waits(guess_invite(campaign), 10)
    assert campaign.submit(device.body(), headers=mine).status == 200
    assert stored_counts(campaign).submissions == 1


def test_a_limited_address_does_not_slow_others(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    for _ in range(8):
        guess_invite(campaign)
    assert enrol(campaign, "192.0.2.9", invite=campaign.invite()).status == 200
    assert server.request("GET", "/v1/campaigns", token=server.token).status == 200


def test_valid_invites_do_not_count_as_guesses(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    for _ in range(10):
        device = campaign.enrol_device()
        assert campaign.submit(device.body()).status == 200
    assert stored_counts(campaign).submissions == 10
