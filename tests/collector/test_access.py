"""Access: what operators, readers of a public collector and everybody else may do."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_refused,
    campaign_fixture,
    openapi_paths,
    server_fixture,
    stored_counts,
)
from support.running_collectors import (
    InProcessCollector,
    Reply,
    RunningCampaign,
    in_process_collector,
)
from unpoison.collector.campaigns.tickets import device_hash
from unpoison.collector.credentials import hashed
from unpoison.collector.storage.operator_tokens import (
    Operator,
    add_operator,
    forget_operators,
    holder_of,
)

FOR_ALL = {
    ("get", "/v1/campaigns/{campaign}"),
    ("post", "/v1/campaigns/{campaign}/tickets"),
    ("post", "/v1/campaigns/{campaign}/reports"),
    ("post", "/v1/campaigns/{campaign}/reports/batch"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
}
"""What needs no token. Every other described route must ask for one, new routes too."""
READS = {
    "/v1/campaigns",
    "/v1/campaigns/{campaign}/status",
    "/v1/campaigns/{campaign}/estimate",
    "/v1/campaigns/{campaign}/summary",
}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/campaigns": {
        "name": "Mine",
        "plan": {"mechanism": "k-rr", "epsilon": 1, "categories": ["a", "b"]},
    },
    "/v1/campaigns/{campaign}/extend": {"closes_at": None},
    "/v1/campaigns/{campaign}/invites": {"count": 1},
    "/v1/campaigns/{campaign}/alarms": {"doubt": True},
}
Route = tuple[str, str]
Pair = tuple[Any, Any]

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()


ROUTES: list[Route] = [
    (method, path)
    for path, methods in openapi_paths().items()
    for method in methods
    if (method, path) not in FOR_ALL
]


def ask(
    campaign: RunningCampaign, route: Route, query: str = "", name: str | None = None, **rest: Any
) -> Reply:
    method, path = route
    named = path.replace("{campaign}", name or campaign.id) + query
    body = BODIES.get(path) if method in ("post", "put") else None
    return campaign.server.request(method.upper(), named, body, **rest)


def state(campaign: RunningCampaign) -> tuple[object, ...]:
    """What an operator could have changed."""
    listed = campaign.server.operator.get("/v1/campaigns")["campaigns"]
    status = campaign.status()
    return (
        len(listed),
        status["state"],
        status["closes_at"],
        status["invites"],
        stored_counts(campaign),
    )


@pytest.fixture
def _nothing_changes(campaign: RunningCampaign) -> Iterator[None]:
    before = state(campaign)
    yield
    assert state(campaign) == before


unchanged = pytest.mark.usefixtures("_nothing_changes")
routes = pytest.mark.parametrize("route", ROUTES, ids=" ".join)


def test_there_are_routes_for_operators() -> None:
    assert {("post", "/v1/campaigns"), ("get", "/v1/campaigns/{campaign}/export")} <= {*ROUTES}
    assert len(ROUTES) >= 10


@unchanged
@routes
def test_operator_routes_refuse_anything_but_the_token(
    server: InProcessCollector, campaign: RunningCampaign, route: Route
) -> None:
    basic = base64.b64encode(f"operator:{server.token}".encode()).decode()
    kept = hashed(server.token)
    claims: dict[str, dict[str, Any]] = {
        "none": {},
        "wrong": {"token": secrets.token_hex(32)},
        "empty": {"token": ""},
        "shorter": {"token": server.token[:-1]},
        "longer": {"token": f"{server.token}0"},
        "upper case": {"token": server.token.upper() + "A"},
        "its hash": {"token": kept.hex()},
        "twice": {"token": f"{server.token} {server.token}"},
        "in the query": {"query": f"?token={server.token}&access_token={server.token}"},
        "as a password": {"headers": {"Authorization": f"Basic {basic}"}},
        "bare": {"headers": {"Authorization": server.token}},
        "as another kind": {"headers": {"Authorization": f"Token {server.token}"}},
        "as a cookie": {"headers": {"Cookie": f"token={server.token}; session={server.token}"}},
        "as a key": {"headers": {"X-Api-Key": server.token, "X-Token": server.token}},
    }
    for claim, keys in claims.items():
        reply = ask(campaign, route, **keys)
        assert (reply.status, reply.code) == (401, "unauthorized"), claim
        assert reply.headers["www-authenticate"] == "Bearer"
    unknown = ask(campaign, route, name="000000000000")
    assert_refused(unknown, 401, "unauthorized")


@routes
def test_an_operator_with_the_token_is_not_refused(
    server: InProcessCollector, route: Route
) -> None:
    reply = ask(server.create_campaign(min_users=1000), route, token=server.token)
    assert reply.status not in (401, 403, 404, 422), reply


@pytest.mark.server
@pytest.mark.parametrize("public", [False, True])
def test_a_public_collector_lets_all_read_and_nobody_else_write(
    tmp_path: Path, public: bool
) -> None:
    with in_process_collector(tmp_path, public=public, **NO_RATE_LIMITS) as server:
        campaign = server.create_campaign(min_users=1000)
        before = state(campaign)
        for route in ROUTES:
            reply = ask(campaign, route)
            if public and route[0] == "get" and route[1] in READS:
                assert reply.status in (200, 409), (route, reply)
            else:
                assert_refused(reply, 401, "unauthorized")
        assert state(campaign) == before


def test_the_description_says_what_needs_a_token() -> None:
    paths = openapi_paths()
    for method, path in ROUTES:
        assert paths[path][method]["security"] == [{"HTTPBearer": []}], path
    for method, path in FOR_ALL:
        assert "security" not in paths[path][method], path


@pytest.mark.server
def test_a_token_can_be_taken_away(tmp_path: Path) -> None:
    with in_process_collector(tmp_path, **NO_RATE_LIMITS) as server:
        assert server.request("GET", "/v1/campaigns", token=server.token).status == 200
        with server.collector.database.writing() as connection:
            assert forget_operators(connection) == 1
        server.collector.read_cache.clear()
        assert_refused(
            server.request("GET", "/v1/campaigns", token=server.token), 401, "unauthorized"
        )


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[Pair]:
    """All that is compared in a time that tells nothing."""
    pairs: list[Pair] = []
    compare = hmac.compare_digest

    def watched(one: Any, other: Any) -> bool:
        pairs.append((one, other))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    return pairs


def test_a_token_is_compared_with_every_hash_whichever_it_is(
    compared: list[Pair],
) -> None:
    tokens = [secrets.token_hex(32) for _ in range(5)]
    holders = [Operator(token[:4], token_hash=hashed(token)) for token in tokens]
    for token in [*tokens, "wrong", ""]:
        compared.clear()
        holder = holder_of(token, holders)
        assert (holder and holder.name) == (token[:4] if token in tokens else None)
        assert compared == [(hashed(token), holder.token_hash) for holder in holders]


@pytest.mark.server
def test_a_token_sent_over_http_is_compared_with_every_hash(
    tmp_path: Path, compared: list[Pair]
) -> None:
    settings = {"operator_token": secrets.token_hex(32), **NO_RATE_LIMITS}
    with in_process_collector(tmp_path, **settings) as server:
        with server.collector.database.writing() as connection:
            tokens = [add_operator(connection, now=0) for _ in range(2)]
        server.collector.read_cache.clear()
        known = [*tokens, str(settings["operator_token"])]
        for token in [*known, secrets.token_hex(32)]:
            compared.clear()
            reply = server.request("GET", "/v1/campaigns", token=token)
            assert reply.status == (200 if token in known else 401)
            assert {one for one, _ in compared} == {hashed(token)}
            assert sorted(other for _, other in compared) == sorted(map(hashed, known))


def test_tickets_and_devices_are_compared_in_constant_time(
    campaign: RunningCampaign, compared: list[Pair]
) -> None:
    device = campaign.enrol_device()
    compared.clear()
    assert campaign.submit(device.body()).status == 200
    (signature, expected), *marks = compared
    assert signature == expected
    assert len(signature) == 32
    assert marks == [(device_hash(device.secret),) * 2]


def test_only_hashes_of_secrets_are_kept(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    device = campaign.enrol_device()
    path = Path(str(server.collector.database.url.database))
    files = [path, *(path.with_name(f"{path.name}-{kind}") for kind in ("wal", "shm"))]
    kept = b"".join(file.read_bytes() for file in files if file.exists())
    assert hashed(server.token) in kept
    for secret in (server.token, str(device.invite), device.secret, device.ticket["ticket"]):
        assert secret.encode() not in kept
        if re.fullmatch("[0-9a-f]+", secret):
            assert bytes.fromhex(secret) not in kept
