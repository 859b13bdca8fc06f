"""A device with an issuer: it checks whose token it asks for, keeps it, and shows it once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.raw_http import NO_RATE_LIMITS, server_fixture
from support.running_collectors import InProcessCollector, RunningCampaign
from support.running_issuers import RunningIssuer, running_issuer
from support.token_holders import key_holder
from unpoison import (
    CollectorNotTrusted,
    CollectorRefused,
    InvalidFile,
    InvalidParameter,
    IssuerNotTrusted,
    IssuerRefused,
)
from unpoison.client import Device, Issuer, Ledger, Policy, Response, Transport
from unpoison.privacy_pass import Token, from_base64url

server = server_fixture(**NO_RATE_LIMITS)
HOLDER, OTHER = key_holder("first"), key_holder("second")
POLICY = Policy(low=0, high=100)


@pytest.fixture(scope="module")
def issuer() -> Iterator[RunningIssuer]:
    with running_issuer([HOLDER], tokens=1) as running:
        yield running


@pytest.fixture
def campaign(server: InProcessCollector, issuer: RunningIssuer) -> RunningCampaign:
    return create(server, issuer)


def create(server: InProcessCollector, issuer: RunningIssuer, **fields: Any) -> RunningCampaign:
    return HOLDER.create_campaign(server, issuer=HOLDER.body(name=issuer.name, **fields))


class RecordedTransport:
    """A transport that remembers requests, and may lose or change answers."""

    def __init__(self, inner: Transport) -> None:
        self.inner, self.requests = inner, list[tuple[str, str, bytes | None]]()
        self.lose: set[str] = set()
        self.replace: dict[str, Response] = {}

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
        self.requests.append((method, path, body))
        response = self.inner.exchange(method, path, body)
        # Tests end without closing it.
        self.inner.close()
        name = path.rpartition("/")[2]
        if name in self.lose:
            raise ConnectionError("the answer is lost")
        return self.replace.get(name, response)

    def sent(self, name: str) -> list[bytes | None]:
        return [body for _, path, body in self.requests if path.endswith(name)]


def watched(issuer: RunningIssuer, account: str) -> RecordedTransport:
    headers = {
        "Authorization": f"Bearer {account}",
        "Content-Type": "application/private-token-request",
    }
    return RecordedTransport(Transport(issuer.url, post_headers=headers))


@contextmanager
def device_of(
    campaign: RunningCampaign, issuer: Issuer | None = None, path: Path | None = None
) -> Iterator[Device]:
    """A device with a ledger, in memory if there is no path."""
    with (
        Ledger(path) as ledger,
        Device(campaign.server.url, POLICY, ledger, issuer=issuer) as device,
    ):
        yield device


def test_a_device_reports_with_a_token(campaign: RunningCampaign, issuer: RunningIssuer) -> None:
    with Ledger(None) as ledger, Issuer(issuer.url, issuer.account()) as known:
        with Device(campaign.server.url, POLICY, ledger, issuer=known) as device:
            receipt = device.report(campaign.id, 42.0)
        assert receipt.reports >= 1
        assert campaign.status()["submissions"] == 1


def test_an_account_takes_part_once(campaign: RunningCampaign, issuer: RunningIssuer) -> None:
    account = issuer.account()
    with Issuer(issuer.url, account) as known, device_of(campaign, known) as device:
        device.report(campaign.id, 42.0)
    with (
        Issuer(issuer.url, account) as known,
        device_of(campaign, known) as another,
        pytest.raises(IssuerRefused, match="403 no-tokens-left"),
    ):
        another.report(campaign.id, 42.0)
    assert campaign.status()["enrolled"] == 1


def test_after_a_lost_answer_the_identical_request_and_token_are_sent(
    campaign: RunningCampaign, issuer: RunningIssuer, tmp_path: Path
) -> None:
    account = issuer.account()
    tokens, collector = watched(issuer, account), RecordedTransport(Transport(campaign.server.url))
    tokens.lose, collector.lose = {"token-request"}, {"tickets"}
    known = Issuer(issuer.url, account, transport=tokens)
    for lost in ("token-request", "tickets", ""):
        with Ledger(tmp_path / "ledger.db") as ledger:
            device = Device(campaign.server.url, POLICY, ledger, collector, issuer=known)
            if lost:
                with pytest.raises(ConnectionError):
                    device.report(campaign.id, 42.0)
            else:
                device.report(campaign.id, 42.0)
        if lost == "token-request":
            tokens.lose = set()
        if lost == "tickets":
            collector.lose = set()
    assert len(tokens.sent("token-request")) == 2
    assert len(set(tokens.sent("token-request"))) == 1
    assert len(collector.sent("tickets")) == 2
    assert len(set(collector.sent("tickets"))) == 1
    assert campaign.status()["enrolled"] == 1


def test_a_token_can_be_fetched_beforehand(
    campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    tokens = watched(issuer, issuer.account())
    known = Issuer(issuer.url, "account", transport=tokens)
    with Ledger(None) as ledger:
        with Device(campaign.server.url, POLICY, ledger, issuer=known) as device:
            device.fetch_token(campaign.id)
        assert campaign.status()["enrolled"] == 0
        asked = len(tokens.requests)
        with Device(campaign.server.url, POLICY, ledger) as without_issuer:
            without_issuer.report(campaign.id, 42.0)
        assert len(tokens.requests) == asked


def test_without_an_issuer_nothing_is_asked_for(campaign: RunningCampaign) -> None:
    rule = "issuer is needed for this campaign"
    with device_of(campaign) as device, pytest.raises(InvalidParameter, match=rule):
        device.report(campaign.id, 42.0)
    assert campaign.status()["enrolled"] == 0


def test_other_campaigns_ask_no_issuer(server: InProcessCollector, issuer: RunningIssuer) -> None:
    tokens = watched(issuer, issuer.account())
    known = Issuer(issuer.url, "account", transport=tokens)
    campaign = server.create_campaign(access="open")
    with Ledger(None) as ledger, Device(server.url, POLICY, ledger, issuer=known) as device:
        device.report(campaign.id, 42.0)
    assert tokens.requests == []


def test_the_issuer_sees_neither_token_nor_campaign_and_the_collector_no_account(
    campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    account = issuer.account()
    tokens, collector = watched(issuer, account), RecordedTransport(Transport(campaign.server.url))
    known = Issuer(issuer.url, account, transport=tokens)
    with Ledger(None) as ledger:
        Device(campaign.server.url, POLICY, ledger, collector, issuer=known).report(
            campaign.id, 1.0
        )
    (ticket_request,) = collector.sent("tickets")
    token = Token.decode(from_base64url(json.loads(ticket_request or b"")["token"]))
    to_issuer = b"".join(body or b"" for _, _, body in tokens.requests)
    for part in (token.nonce, token.challenge_digest, token.key_id, token.signature):
        assert part not in to_issuer
    assert campaign.id not in "".join(path for _, path, _ in tokens.requests)
    to_collector = b"".join(body or b"" for _, _, body in collector.requests)
    assert account.encode() not in to_collector


@pytest.mark.server
def test_the_directory_is_not_told_who_asks(
    campaign: RunningCampaign, issuer: RunningIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, dict[str, str]]] = []
    from http.client import HTTPConnection

    request = HTTPConnection.request

    def recorded(self: Any, method: str, path: str, body: Any, headers: dict[str, str]) -> None:
        if self.port == issuer.port:
            sent.append((path, headers))
        request(self, method, path, body, headers)

    monkeypatch.setattr(HTTPConnection, "request", recorded)
    with (
        Issuer(issuer.url, issuer.account()) as known,
        device_of(campaign, known) as device,
    ):
        device.report(campaign.id, 42.0)
    with_account = [path for path, headers in sent if "Authorization" in headers]
    assert with_account == ["/token-request"]
    assert any(path.endswith("issuer-directory") for path, _ in sent)


def refused(campaign: RunningCampaign, known: Issuer, error: type[Exception], words: str) -> None:
    with device_of(campaign, known) as device, pytest.raises(error, match=words):
        device.report(campaign.id, 42.0)
    assert campaign.status()["enrolled"] == 0


def test_an_issuer_of_another_name_is_not_asked(
    server: InProcessCollector, issuer: RunningIssuer
) -> None:
    campaign = HOLDER.create_campaign(server)  # Of login.example.
    tokens = watched(issuer, issuer.account())
    known = Issuer(issuer.url, "account", transport=tokens)
    refused(campaign, known, CollectorNotTrusted, "tokens are of another issuer")
    assert tokens.requests == []


def test_a_key_that_is_not_in_the_directory_is_refused(
    server: InProcessCollector, issuer: RunningIssuer
) -> None:
    campaign = OTHER.create_campaign(server, issuer=OTHER.body(name=issuer.name))
    tokens = watched(issuer, issuer.account())
    known = Issuer(issuer.url, "account", transport=tokens)
    refused(campaign, known, IssuerNotTrusted, "key is not in the issuer's directory")
    assert tokens.sent("token-request") == []


def test_a_pinned_key_is_the_only_one(campaign: RunningCampaign, issuer: RunningIssuer) -> None:
    with Issuer(issuer.url, issuer.account(), key=OTHER.key.pem) as known:
        refused(campaign, known, CollectorNotTrusted, "of another key")


def test_a_challenge_for_another_collector_is_refused(
    server: InProcessCollector, issuer: RunningIssuer
) -> None:
    here = create(server, issuer, origins=[f"127.0.0.1:{server.port}"])
    there = create(server, issuer, origins=["collector.example"])
    with Issuer(issuer.url, issuer.account()) as known:
        refused(there, known, CollectorNotTrusted, "challenge is not for this collector")
        with device_of(here, known) as device:
            device.report(here.id, 42.0)


def offered(campaign: RunningCampaign, **changes: Any) -> Response:
    offer = campaign.server.request("GET", campaign.path).json
    return Response(200, json.dumps({**offer, **changes}).encode())


def test_a_challenge_for_another_campaign_is_refused(
    server: InProcessCollector, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    other = server.request("GET", create(server, issuer).path).json
    collector = RecordedTransport(Transport(server.url))
    collector.replace[campaign.id] = offered(campaign, token_challenge=other["token_challenge"])
    with Ledger(None) as ledger, Issuer(issuer.url, issuer.account()) as known:
        device = Device(server.url, POLICY, ledger, collector, issuer=known)
        with pytest.raises(CollectorNotTrusted, match="challenge is not for this campaign"):
            device.report(campaign.id, 42.0)


@pytest.mark.parametrize("field", ["token_challenge", "token_key"])
@pytest.mark.parametrize("lie", ["", "AAI", "no base64url!", 7, None])
def test_terms_that_make_no_sense_are_refused(
    campaign: RunningCampaign, issuer: RunningIssuer, field: str, lie: object
) -> None:
    collector = RecordedTransport(Transport(campaign.server.url))
    collector.replace[campaign.id] = offered(campaign, **{field: lie})
    with Ledger(None) as ledger, Issuer(issuer.url, issuer.account()) as known:
        device = Device(campaign.server.url, POLICY, ledger, collector, issuer=known)
        with pytest.raises(CollectorNotTrusted):
            device.report(campaign.id, 42.0)


def test_terms_that_change_cost_no_second_token(
    server: InProcessCollector, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    tokens = watched(issuer, issuer.account())
    known = Issuer(issuer.url, "account", transport=tokens)
    origin = f"127.0.0.1:{server.port}"
    from unpoison.privacy_pass import campaign_challenge, to_base64url

    changed = campaign_challenge(campaign.id, issuer.name, (origin,))
    with Ledger(None) as ledger:
        with Device(server.url, POLICY, ledger, issuer=known) as device:
            device.fetch_token(campaign.id)
        collector = RecordedTransport(Transport(server.url))
        text = to_base64url(changed.encode())
        collector.replace[campaign.id] = offered(campaign, token_challenge=text)
        with pytest.raises(CollectorNotTrusted, match="others than it asked for before"):
            Device(server.url, POLICY, ledger, collector, issuer=known).report(campaign.id, 1.0)
    assert len(tokens.sent("token-request")) == 1


@pytest.mark.parametrize("answer", [b"", bytes(255), bytes(256), b"\xff" * 256])
def test_a_signature_that_is_not_valid_is_not_shown_to_the_collector(
    campaign: RunningCampaign, issuer: RunningIssuer, answer: bytes
) -> None:
    tokens = watched(issuer, issuer.account())
    tokens.replace["token-request"] = Response(200, answer)
    known = Issuer(issuer.url, "account", transport=tokens)
    refused(campaign, known, IssuerNotTrusted, "signature is not valid")


@pytest.mark.parametrize(
    "directory",
    [
        b"",
        b"[]",
        b"{}",
        b'{"token-keys": {}}',
        b'{"issuer-request-uri": "https://elsewhere.example/", "token-keys": [KEY]}',
        b'{"issuer-request-uri": 7, "token-keys": [KEY]}',
        b'{"token-keys": [KEY]}',
    ],
)
def test_a_directory_that_makes_no_sense_is_refused(
    campaign: RunningCampaign, issuer: RunningIssuer, directory: bytes
) -> None:
    from unpoison.privacy_pass import to_base64url

    entry = json.dumps({"token-type": 2, "token-key": to_base64url(HOLDER.key.der)}).encode()
    tokens = watched(issuer, issuer.account())
    body = directory.replace(b"KEY", entry)
    tokens.replace["private-token-issuer-directory"] = Response(200, body)
    known = Issuer(issuer.url, "account", transport=tokens)
    refused(campaign, known, IssuerNotTrusted, "directory")
    assert tokens.sent("token-request") == []


def test_a_refusal_of_the_collector_is_the_users_to_read(
    server: InProcessCollector, issuer: RunningIssuer, tmp_path: Path
) -> None:
    """Two devices with copies of one ledger have one token; the second is refused."""
    campaign = create(server, issuer)
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with (
        Issuer(issuer.url, issuer.account()) as known,
        device_of(campaign, known, path) as device,
    ):
        device.fetch_token(campaign.id)
    copy.write_bytes(path.read_bytes())
    with Ledger(path) as ledger, Device(server.url, POLICY, ledger) as device:
        device.report(campaign.id, 42.0)
    refusal = pytest.raises(CollectorRefused, match="409 token-used")
    with device_of(campaign, path=copy) as device, refusal:
        device.report(campaign.id, 42.0)


def test_a_ledger_of_an_earlier_version_takes_tokens(
    campaign: RunningCampaign, issuer: RunningIssuer, tmp_path: Path
) -> None:
    import sqlite3

    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.enrol("https://c.example", "k3v9", "f00", tier=0)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE tokens")
    connection.close()
    with Ledger(path) as ledger, Issuer(issuer.url, issuer.account()) as known:
        assert ledger.entry("https://c.example", "k3v9") is not None
        with Device(campaign.server.url, POLICY, ledger, issuer=known) as device:
            device.report(campaign.id, 42.0)


def test_a_damaged_token_is_an_error_of_the_ledger(
    campaign: RunningCampaign, issuer: RunningIssuer, tmp_path: Path
) -> None:
    import sqlite3

    path = tmp_path / "ledger.db"
    with (
        Issuer(issuer.url, issuer.account()) as known,
        device_of(campaign, known, path) as device,
    ):
        device.fetch_token(campaign.id)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tokens SET pending = 'zz'")
    connection.close()
    refusal = pytest.raises(InvalidFile, match="cannot be used as a ledger")
    with device_of(campaign, path=path) as device, refusal:
        device.report(campaign.id, 42.0)


@pytest.mark.parametrize("account", ["", "a b", "a\nb", "é", 5000 * "a"])
def test_an_account_that_cannot_stand_in_a_header_is_refused(account: str) -> None:
    with pytest.raises(InvalidParameter, match="account must be letters") as refusal:
        Issuer("https://login.example", account)
    assert account not in str(refusal.value) or not account


def test_an_address_without_tls_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="issuer must be https://"):
        Issuer("http://login.example", "account")
