"""The list of campaigns: pages, search and state, without parsing plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import Connection, event

from support.raw_http import NO_RATE_LIMITS, assert_refused, server_fixture
from support.running_collectors import SMALL_PLAN, InProcessCollector, in_process_collector
from unpoison import Plan
from unpoison.collector.campaigns import campaign as campaign_module
from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.estimate_history import due_for_estimate
from unpoison.collector.campaigns.group_counters import count_devices
from unpoison.collector.campaigns.listing import (
    DEFAULT_LIMIT,
    MOST_ENTRIES,
    ListQuery,
    list_campaigns,
    plan_facts,
)

TIERED = {**SMALL_PLAN, "tiers": [{"epsilon": 0.5, "min_epsilon": 0.25}]}
BASELINE = {**SMALL_PLAN, "protocol": "baseline"}
START = 1_700_000_000

server = server_fixture(**NO_RATE_LIMITS)


def add(server: InProcessCollector, count: int, at: int, name: str = "Rides") -> list[str]:
    """Add campaigns, two of which are created every second."""
    plan = Plan.from_dict(SMALL_PLAN)
    added = [Campaign.new(f"{name} {n}", plan, at + n // 2) for n in range(count)]
    with server.collector.database.writing() as connection:
        for campaign in added:
            Campaigns.add(connection, campaign)
    return [campaign.id for campaign in sorted(added, key=lambda c: (-c.created_at, c.id))]


def page(server: InProcessCollector, **query: Any) -> dict[str, Any]:
    listed: dict[str, Any] = server.operator.get(f"/v1/campaigns?{urlencode(query)}")
    assert set(listed) == {"campaigns", "next"}
    return listed


def ids(listed: dict[str, Any]) -> list[str]:
    return [entry["id"] for entry in listed["campaigns"]]


@pytest.mark.server
def test_a_null_character_is_refused_by_every_kind_of_database(
    database: str, tmp_path: Path
) -> None:
    settings = {"database": database, "key_file": str(tmp_path / "tickets.keys")}
    with in_process_collector(tmp_path, **settings) as server:
        reply = server.request("GET", "/v1/campaigns?search=a%00b", token=server.token)
        assert_refused(reply, 422, "invalid-request")


@pytest.mark.server
def test_pages_are_stable_while_campaigns_are_added(tmp_path: Path) -> None:
    with in_process_collector(tmp_path, **NO_RATE_LIMITS) as server:
        expected, listed = add(server, 25, START), []
        after: dict[str, str] = {}
        for turn in range(9):
            one = page(server, limit=3, **after)
            listed += ids(one)
            after = {"after": one["next"]}
            add(server, 2, START + 1000 + turn, name="Later")
        assert listed == expected
        assert one["next"] is None
        assert len(ids(page(server))) == 25 + 18


def test_the_last_page_has_no_next_one(server: InProcessCollector) -> None:
    add(server, 4, START, name="Exact")
    assert page(server, search="Exact", limit=4)["next"] is None
    assert page(server, search="Exact", limit=3)["next"] is not None
    assert page(server, search="Exact", limit=5)["next"] is None


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("alpha", ["Alpha_1 100%"]),
        ("ALPHA", ["Alpha_1 100%"]),
        ("a_1", ["Alpha_1 100%"]),
        ("0%", ["Alpha_1 100%"]),
        ("%", ["Alpha_1 100%"]),
        ("\\", ["Back\\slash"]),
        ("größe", ["Größe"]),
        ("' OR 1=1 --", []),
    ],
)
def test_search_takes_texts_as_they_are(
    server: InProcessCollector, search: str, names: list[str]
) -> None:
    if not page(server, search="Größe")["campaigns"]:
        for name in ("Alpha_1 100%", "Back\\slash", "Größe", "Alphabet"[::-1]):
            server.create_campaign(name=name)
    listed = page(server, search=search, limit=MOST_ENTRIES)
    assert [entry["name"] for entry in listed["campaigns"]] == names


def test_campaigns_are_filtered_by_state(server: InProcessCollector) -> None:
    draft = server.create_campaign(name="Filter draft", open=False)
    running = server.create_campaign(name="Filter open")
    closed = server.create_campaign(name="Filter closed")
    server.operator.post(f"{closed.path}/close")
    expected = {"draft": draft.id, "open": running.id, "closed": closed.id}
    for state, campaign in expected.items():
        assert ids(page(server, search="Filter", state=state)) == [campaign]
    assert set(ids(page(server, search="Filter"))) == set(expected.values())


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": MOST_ENTRIES + 1},
        {"limit": "many"},
        {"state": "gone"},
        {"search": "a" * 201},
        {"after": "1-"},
        {"after": "-0123456789ab"},
        {"after": "9" * 30 + "-0123456789ab"},
        {"after": "²-0123456789ab"},
        {"after": "1-' OR 1 = 1"},
    ],
    ids=str,
)
def test_other_queries_are_refused(server: InProcessCollector, query: dict[str, Any]) -> None:
    reply = server.request("GET", f"/v1/campaigns?{urlencode(query)}", token=server.token)
    assert_refused(reply, 422, "invalid-request")


def test_no_plan_is_parsed_for_a_list(
    server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(server, DEFAULT_LIMIT + 5, START - 5000, name="Cheap")
    parsed: list[str] = []
    original = Plan.from_json.__func__  # type: ignore[attr-defined]

    def counting(cls: type[Plan], text: str) -> Plan:
        parsed.append(text)
        return original(cls, text)  # type: ignore[no-any-return]

    monkeypatch.setattr(Plan, "from_json", classmethod(counting))
    campaign_module.parsed_plan.cache_clear()
    assert len(page(server, search="Cheap")["campaigns"]) == DEFAULT_LIMIT
    with server.collector.database.reading() as connection:
        due_for_estimate(connection)
    assert parsed == []
    assert campaign_module.parsed_plan(Plan.from_dict(SMALL_PLAN).to_json())
    assert len(parsed) == 1, "the count would have seen it"


def test_a_list_takes_as_many_statements_however_many_campaigns_there_are(
    server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, statements = server.collector.read_cache, list[str]()

    def read_and_count(read: Callable[[Connection], Any]) -> Any:
        """As the cache reads, with the statements of a list; others may be read meanwhile."""
        executed: list[str] = []
        with cache.database.reading() as connection:
            event.listen(
                connection, "before_cursor_execute", lambda *call: executed.append(call[2])
            )
            result = read(connection)
        if isinstance(result, dict) and "campaigns" in result:
            statements.extend(executed)
        return result

    def statements_of_list(campaigns: int) -> int:
        statements.clear()
        assert len(ids(page(server, search="Counted", limit=MOST_ENTRIES))) == campaigns
        return len(statements)

    monkeypatch.setattr(cache, "_read", read_and_count)
    add(server, 2, START - 20_000, name="Counted")
    few = statements_of_list(2)
    add(server, 60, START - 20_000, name="Counted")
    assert 0 < statements_of_list(62) == few <= 5


@pytest.mark.parametrize("keys", [SMALL_PLAN, TIERED, BASELINE], ids=["dap", "tiers", "baseline"])
def test_facts_of_a_plan_are_those_of_the_parsed_plan(keys: dict[str, Any]) -> None:
    plan = Plan.from_dict(keys)
    facts = plan_facts(plan.to_json())
    assert facts.fingerprint == plan.fingerprint
    assert facts.counting_groups == plan.groups_that_count_users


def test_users_of_the_baseline_count_once_and_are_due_once(server: InProcessCollector) -> None:
    campaign = server.create_campaign(BASELINE, name="Counted once", min_users=5)
    with server.collector.database.writing() as connection:
        count_devices(connection, campaign.id, [0, 1] * 4, "submissions")
        assert campaign.id not in due_for_estimate(connection)
        (entry,) = list_campaigns(connection, ListQuery(search="Counted once"))["campaigns"]
        assert entry["submissions"] == 4
        count_devices(connection, campaign.id, [0, 1], "submissions")
        assert campaign.id in due_for_estimate(connection)


def test_an_operator_reads_all_pages(
    server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = add(server, 7, START - 9000, name="Followed")
    monkeypatch.setattr("unpoison.client.operator.PAGE", 3)
    listed = server.operator.campaigns(search="Followed", state="draft")
    assert [entry["id"] for entry in listed] == added
    assert server.operator.campaigns(search="Followed", state="open") == []
