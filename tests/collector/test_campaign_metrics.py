"""Metrics by campaign: what they say, who may read them, and on which port."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.raw_http import assert_refused, server_fixture
from support.running_collectors import InProcessCollector, RunningCollector, in_process_collector
from unpoison._version import __version__
from unpoison.collector.campaigns.estimate_history import store_estimate
from unpoison.collector.campaigns.group_counters import count_devices
from unpoison.collector.storage.operator_tokens import READER, add_operator
from unpoison.estimate import Byzantine, Estimate

server = server_fixture(estimate_every=86400)


def stored_estimate(
    server: InProcessCollector, campaign: str, share: float = 0.25, doubt: bool | None = True
) -> None:
    """Store an estimate of 9 users, as of now."""
    fit = {} if doubt is None else {"nobody_attacks_p_value": 0.002, "doubt": doubt}
    text = Estimate("joint", 4.5, Byzantine(share, "right"), users=9.0, fit=fit).to_json()
    with server.collector.database.writing() as connection:
        store_estimate(connection, campaign, text, server.clock.now())
    server.collector.read_cache.clear()


def series(text: str, campaign: str) -> dict[str, float]:
    """The series of one campaign by their names, without the common beginning."""
    pattern = rf'^unpoison_campaign_(\w+){{campaign="{campaign}"}} (\S+)$'
    return {name: float(number) for name, number in re.findall(pattern, text, re.MULTILINE)}


def read(server: RunningCollector, token: str | None = None) -> str:
    reply = server.request("GET", "/metrics", token=token)
    assert reply.status == 200
    return reply.body.decode()


def test_a_campaign_has_its_figures(server: InProcessCollector) -> None:
    campaign = server.create_campaign(name='A "name"')
    with server.collector.database.writing() as connection:
        for column, number in (("enrolled", 400), ("submissions", 200)):
            groups = [0] * number + [1] * 400 + [2] * 400
            count_devices(connection, campaign.id, groups, column)
    server.collector.read_cache.clear()
    before = series(read(server, server.token), campaign.id)
    assert set(before) == {"users", "balance_p_value"}
    assert before["users"] == 1000
    stored_estimate(server, campaign.id)
    server.clock.step += 30
    text = read(server, server.token)
    shown = series(text, campaign.id)
    assert shown.pop("balance_p_value") < 1e-9
    assert 30 <= shown.pop("estimate_age_seconds") < 300
    expected = {"users": 1000, "attacker_share": 0.25, "nobody_attacks_p_value": 0.002, "doubt": 1}
    assert shown == expected
    labels = f'campaign="{campaign.id}",name="A \\"name\\"",state="open"'
    assert f"unpoison_campaign_info{{{labels}}} 1.0" in text


def test_what_a_method_does_not_tell_is_missing(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    stored_estimate(server, campaign.id, share=0.0, doubt=None)
    shown = series(read(server, server.token), campaign.id)
    assert shown["attacker_share"] == 0
    assert not {"doubt", "nobody_attacks_p_value"} & set(shown)


def test_nobody_without_a_token_reads_them(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    stored_estimate(server, campaign.id)
    text = read(server)
    assert campaign.id not in text
    assert "unpoison_campaign" not in text
    assert "unpoison_queue_waiting" in text
    assert "process_resident_memory_bytes" in text
    assert f'unpoison_build_info{{version="{__version__}"}} 1.0' in text
    wrong = server.request("GET", "/metrics", token="wrong")
    assert_refused(wrong, 401, "unauthorized")


def test_readers_do(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    with server.collector.database.writing() as connection:
        token = add_operator(connection, 0, "ada", READER)
    server.collector.read_cache.clear()
    assert series(read(server, token), campaign.id)


def test_a_deleted_campaign_is_gone_and_a_draft_is_not_there_yet(
    server: InProcessCollector,
) -> None:
    campaign, draft = server.create_campaign(), server.create_campaign(open=False)
    stored_estimate(server, campaign.id)
    text = read(server, server.token)
    assert campaign.id in text
    assert draft.id not in text
    server.operator.post(f"{campaign.path}/close")
    assert f'campaign="{campaign.id}",name="A test",state="closed"' in read(server, server.token)
    server.operator.delete(campaign.path)
    assert campaign.id not in read(server, server.token)


# The port of their own


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def with_port(tmp_path: Path, free_port: int) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path, metrics_port=free_port) as running:
        yield running


@pytest.mark.server
def test_the_other_port_shows_all_metrics_and_nothing_else(
    with_port: InProcessCollector, free_port: int
) -> None:
    campaign = with_port.create_campaign()
    other = RunningCollector(free_port, "")
    text = read(other)
    assert series(text, campaign.id)["users"] == 0
    assert "unpoison_queue_waiting" in text
    assert campaign.id not in read(with_port)
    for path in ("/", "/v1/campaigns", "/healthz", "/openapi.json"):
        assert other.request("GET", path).status == 404
    assert other.request("POST", "/metrics", {}).status == 405


@pytest.mark.server
def test_the_other_port_closes_with_the_collector(tmp_path: Path, free_port: int) -> None:
    with in_process_collector(tmp_path, metrics_port=free_port):
        assert read(RunningCollector(free_port, ""))
    with pytest.raises(ConnectionError):
        read(RunningCollector(free_port, ""))
