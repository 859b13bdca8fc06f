"""The description of the API, taken at its word: nothing that it allows or forbids breaks a thing.

Schemathesis makes requests from the description, valid ones and ones with a fault in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.raw_http import NO_RATE_LIMITS, assert_refused, openapi_paths, server_fixture
from support.running_collectors import SMALL_PLAN, InProcessCollector, Reply
from unpoison.plan.form import KEYS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ROUTES = [(method.upper(), path) for path, methods in openapi_paths().items() for method in methods]
FEW_INVITES = 20

server = server_fixture(**NO_RATE_LIMITS)


@pytest.fixture(scope="module")
def description(server: InProcessCollector) -> BaseSchema:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """One connection for all, as long as it lasts."""
    with requests.Session() as http_session:
        yield http_session


def bounded(examples: int) -> settings:
    """The same examples each time, and only so many."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=slow,
    )


def tried(
    run: Callable[[Case[Any]], None], cases: st.SearchStrategy[Case[Any]], examples: int
) -> None:
    """Run cases, if there are any: a route without parameters cannot be asked wrongly."""
    try:
        bounded(examples)(given(cases)(run))()
    except Unsatisfiable:
        return


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_whatever_is_asked_is_answered_as_described(
    server: InProcessCollector,
    description: BaseSchema,
    session: requests.Session,
    route: tuple[str, str],
    mode: GenerationMode,
) -> None:
    method, path = route
    operation = description[path][method]
    campaign, token = (
        server.create_campaign(access="open"),
        {"Authorization": f"Bearer {server.token}"},
    )
    statuses: Counter[int] = Counter()

    def run(case: Case[Any]) -> None:
        if path.endswith("/invites") and isinstance(case.body, dict) and "count" in case.body:
            count = case.body["count"]
            case.body["count"] = min(count, FEW_INVITES) if type(count) is int else count
        response = case.call(headers=token, session=session)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)
        if response.status_code >= 400:
            reply = Reply(response.status_code, {}, response.content or b"")
            assert reply.code

    if "{campaign}" in path:
        known = {"campaign": campaign.id}
        tried(run, operation.as_strategy(mode, path_parameters=known), 20)
        tried(run, operation.as_strategy(mode), 5)
    else:
        tried(run, operation.as_strategy(mode), 20)
    assert statuses or mode == GenerationMode.NEGATIVE


NUMBERS = (
    st.integers() | st.floats() | st.sampled_from([0, -1, 1e-300, 1e300, 5e-324, 2**63, 10**400])
)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=5)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=6,
)


@bounded(150)
@given(keys=st.dictionaries(st.sampled_from(KEYS), ANYTHING, min_size=1, max_size=3))
def ask_for(make: Callable[[dict[str, Any]], Reply], keys: dict[str, Any]) -> None:
    reply = make({**SMALL_PLAN, **keys})
    if reply.status != 201:
        assert_refused(reply, 422, "invalid-plan")


def test_any_plan_makes_a_campaign_or_is_refused(server: InProcessCollector) -> None:
    def make(plan: dict[str, Any]) -> Reply:
        return server.post("/v1/campaigns", {"name": "Odd", "plan": plan}, token=server.token)

    ask_for(make)


@pytest.mark.parametrize(
    "closes_at",
    [
        "9999-12-31T23:59:59-23:59",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+23:59",
        "2030-01-01T00:00:00",
        "2030-01-01",
        "tomorrow",
        -(10**18),
        10**18,
        1e300,
        True,
    ],
)
def test_an_end_is_a_moment_that_can_be_told(server: InProcessCollector, closes_at: object) -> None:
    """A campaign whose end has no text would be in the way of all others."""
    campaign = server.create_campaign()
    body = {"name": "Long", "plan": SMALL_PLAN, "closes_at": closes_at}
    for path in ("/v1/campaigns", f"{campaign.path}/extend"):
        given_body = body if path == "/v1/campaigns" else {"closes_at": closes_at}
        reply = server.post(path, given_body, token=server.token)
        assert_refused(reply, 422, "invalid-request")
        assert reply.json["error"]["field"] == "closes_at"
    assert server.request("GET", "/v1/campaigns", token=server.token).status == 200
    assert campaign.status()["closes_at"] is None


def test_a_far_end_is_fine(server: InProcessCollector) -> None:
    far = "9998-12-31T23:59:59Z"
    campaign = server.create_campaign(closes_at=far)
    assert campaign.status()["closes_at"] == far


@pytest.mark.parametrize("days", ["3", True, 0, -1, 3651, float("nan"), float("inf"), [3]])
def test_days_are_a_number_of_days(server: InProcessCollector, days: object) -> None:
    campaign = server.create_campaign()
    body = {"count": 1, "days": days}
    assert_refused(
        server.post(f"{campaign.path}/invites", body, token=server.token), 422, "invalid-request"
    )
    assert campaign.status()["invites"] == {"issued": 0, "used": 0}
