"""Wrong values, or the wrong number of them, are refused, and neither echoed nor logged."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator

import pytest

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    exchange,
    server_fixture,
    stored_counts,
)
from support.running_collectors import EnrolledDevice, InProcessCollector, Reply, RunningCampaign
from support.waiting import eventually
from unpoison.collector.logs import JsonLines, set_up_logs

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()

INVALID, OUTSIDE = (422, "invalid-request"), (422, "out-of-domain")
LITERALS = {
    "NaN": INVALID,
    "Infinity": INVALID,
    "-Infinity": INVALID,
    "nan": (400, "invalid-request"),
    "3.0": INVALID,
    "3.5": INVALID,
    "3e0": INVALID,
    "1e400": INVALID,
    '"3"': INVALID,
    '"three"': INVALID,
    '""': INVALID,
    "true": INVALID,
    "false": INVALID,
    "null": INVALID,
    "[3]": INVALID,
    "[[3], [[]]]": INVALID,
    '{"cell": 3}': INVALID,
    "-1": OUTSIDE,
    "-918273645": OUTSIDE,
    "4096": OUTSIDE,
    "918273645": OUTSIDE,
    str(2**31): OUTSIDE,
    str(2**32 + 3): OUTSIDE,
    str(2**63): OUTSIDE,
    str(2**64 + 3): OUTSIDE,
    "1" + "0" * 400: OUTSIDE,
    "-1" + "0" * 400: OUTSIDE,
    "1" + "0" * 5000: (400, "invalid-request"),
    "0x3": (400, "invalid-request"),
    "03": (400, "invalid-request"),
    "+3": (400, "invalid-request"),
}


def sent(campaign: RunningCampaign, device: EnrolledDevice, values: str) -> Reply:
    """A submission whose values are written just so."""
    head = json.dumps(device.body())
    before, _, after = head.partition(json.dumps([7] * device.reports))
    assert after == "}"
    return campaign.submit(f"{before}{values}{after}".encode())


@pytest.mark.parametrize("literal", LITERALS, ids=lambda literal: literal[:12])
def test_what_is_no_cell_is_refused_and_not_repeated(
    campaign: RunningCampaign, literal: str
) -> None:
    assert campaign.plan.cells == 4096
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        for place in {0, device.reports - 1}:
            values = ["5"] * device.reports
            values[place] = literal
            reply = sent(campaign, device, f"[{', '.join(values)}]")
            assert_refused(reply, *LITERALS[literal])
            digits = literal.strip('-"[]{}')
            assert len(digits) < 5 or digits not in reply.body.decode()
    assert campaign.submit(device.body()).status == 200


@pytest.mark.parametrize("cell", [0, 1, 4095])
def test_the_first_and_the_last_cell_are_cells(campaign: RunningCampaign, cell: int) -> None:
    device = campaign.enrol_device()
    before = stored_counts(campaign)
    assert campaign.submit(device.body([cell] * device.reports)).status == 200
    assert stored_counts(campaign).reports == before.reports + device.reports


@pytest.mark.parametrize("change", [-1, 1, 2, 100, 10_000])
def test_a_ticket_is_for_so_many_values(campaign: RunningCampaign, change: int) -> None:
    device = campaign.enrol_device()
    number = device.reports + change
    with assert_nothing_counted(campaign):
        reply = campaign.submit(device.body([7] * number))
        assert_refused(reply, 422, "wrong-number-of-values")
    assert reply.json["error"]["field"] == "values"
    assert campaign.submit(device.body()).status == 200


def test_to_send_no_values_is_to_send_too_few(campaign: RunningCampaign) -> None:
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        assert_refused(sent(campaign, device, "[]"), 422, "wrong-number-of-values")
        for written in ("null", "7", '"7"', "{}", "[", ""):
            reply = sent(campaign, device, written)
            assert reply.status in (400, 422)
            assert reply.code == "invalid-request"
        body = {key: value for key, value in device.body().items() if key != "values"}
        assert_refused(campaign.submit(body), 422, "invalid-request")


def test_values_beyond_all_tickets_are_not_even_read(campaign: RunningCampaign) -> None:
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        assert_refused(campaign.submit(device.body([7] * (2**16 + 1))), 422, "invalid-request")


def test_a_wrong_value_in_a_batch_spoils_only_its_own_submission(campaign: RunningCampaign) -> None:
    good, outside, short = (campaign.enrol_device() for _ in range(3))
    before = stored_counts(campaign)
    bodies = [outside.body([4096] * outside.reports), good.body(), short.body([])]
    reply = campaign.server.post(f"{campaign.path}/reports/batch", {"submissions": bodies})
    codes = [result.get("error", {}).get("code") for result in reply.json["results"]]
    assert (reply.status, codes) == (200, ["out-of-domain", None, "wrong-number-of-values"])
    assert stored_counts(campaign).submissions == before.submissions + 1
    assert stored_counts(campaign).reports == before.reports + good.reports


class Lines(logging.Handler):
    """Keeps what is logged, as it would be written."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(JsonLines())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """Everything that the collector and its web server log, down to the least."""
    names = ("unpoison.collector", "uvicorn.error")
    handler, loggers = Lines(), [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield handler.lines
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def test_logs_have_no_secrets_and_no_values(
    server: InProcessCollector, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = server.create_campaign()
    device, value = campaign.enrol_device(), 3917
    body = device.body([value] * device.reports)
    wrong = secrets.token_hex(32)
    outside = 918273645
    assert campaign.submit(body).status == 200
    assert campaign.submit(body).status == 200
    replies = [
        campaign.submit({**body, "values": [outside] * device.reports}),
        campaign.submit({**body, "values": [str(outside)]}),
        campaign.submit({**body, "device": wrong}),
        campaign.submit({**body, "ticket": wrong}),
        campaign.submit({**body, wrong: wrong}),
        campaign.request_ticket(device=wrong, invite=device.invite),
        campaign.request_ticket(device=wrong, invite=wrong),
        server.request("GET", f"/v1/campaigns?token={wrong}", token=wrong),
        server.request("GET", f"/v1/{wrong}?{wrong}"),
        server.request("GET", f"/static/{wrong}"),
    ]
    assert all(400 <= reply.status < 500 for reply in replies)
    exchange(server, f"GARBAGE {wrong}\r\n\r\n".encode())

    def fails(*_: object) -> None:
        raise RuntimeError(f"{wrong} {value}")

    monkeypatch.setattr(server.collector, "submit", fails)
    assert_refused(campaign.submit(body), 500, "internal")
    eventually(lambda: any('"status": 500' in line for line in lines))
    events = [json.loads(line) for line in lines]
    assert {event["event"] for event in events} >= {"request", "unhandled exception in a request"}
    assert {event.get("status") for event in events} >= {200, 401, 403, 404, 409, 422, 500}
    secret = (
        device.secret,
        device.ticket["ticket"],
        device.ticket["ticket"].rpartition(".")[2],
        str(device.invite),
        server.token,
        wrong,
        str(value),
        str(outside),
    )
    for line in lines:
        logged = {key: text for key, text in json.loads(line).items() if key != "time"}
        assert not [text for text in secret if text in json.dumps(logged)], line


def test_the_web_server_logs_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever listens to all logs hears nothing: a query could have secrets in it."""
    for name in ("unpoison.collector", "uvicorn.error", "uvicorn.access"):
        for part in ("handlers", "propagate", "level"):
            monkeypatch.setattr(
                logging.getLogger(name), part, getattr(logging.getLogger(name), part)
            )
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])
    set_up_logs("debug")
    assert not logging.getLogger("uvicorn.access").hasHandlers()
    assert logging.getLogger("unpoison.collector").hasHandlers()
