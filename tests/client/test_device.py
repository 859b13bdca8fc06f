"""The device: what it sends, which lies it refuses, retries, budgets, and that values stay."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from support.fake_collector import (
    ANSWER_LOST,
    CAMPAIGN,
    NOT_RECEIVED,
    FakeCollector,
    HonestCollector,
    refusal,
    status,
)
from support.waiting import HANG_SECONDS
from unpoison import (
    BudgetExceeded,
    CollectorNotTrusted,
    CollectorRefused,
    CollectorUnreachable,
    InvalidFile,
    InvalidParameter,
    Plan,
)
from unpoison.client import (
    Device,
    Draw,
    Ledger,
    Offer,
    Policy,
    Response,
    Retries,
    Transport,
    draw_cells,
    submission,
)
from unpoison.client.enrolment import checked_ticket
from unpoison.client.offered_plan import MAX_LIST, offered_plan
from unpoison.mechanisms.randomness import SystemGenerator

PLAN = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=86400)
KINDS = Plan.new("k-rr-integer", epsilon=1.0, categories=["tea", "coffee", "milk"])
TWICE = Plan.new("piecewise-integer", epsilon=1.0, low=0, high=86400, protocol="baseline")
TIERS = Plan.new("square-wave-integer", epsilon=1.0, low=0, high=86400, tiers=[{"epsilon": 0.3}])
POLICY = Policy(low=0, high=86400)
VALUE = 31337.1234567
QUICK = Retries(attempts=4, first=0.001, longest=0.002, patience=20.0)


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector(PLAN) as fake:
        yield fake


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def reported(
    fake: FakeCollector, ledger: Ledger, policy: Policy = POLICY, value: object = VALUE, **more: Any
) -> Any:
    with Transport(fake.url, retries=QUICK) as transport:
        return Device(fake.url, policy, ledger, transport).report(CAMPAIGN, value, **more)


# What is sent


def test_a_value_becomes_noisy_cells_and_a_receipt(
    collector: FakeCollector, ledger: Ledger
) -> None:
    receipt = reported(collector, ledger)
    assert (receipt.groups, receipt.reports, receipt.already) == ((2,), 4, False)
    assert (receipt.epsilon, receipt.total) == (1, 1)
    assert [request.method for request in collector.requests] == ["GET", "POST", "POST"]
    enrolment, sent = collector.requests[1].json, collector.requests[2].json
    assert enrolment.keys() == {"device", "tier"}
    assert enrolment["tier"] == 0
    assert sent.keys() == {"ticket", "device", "values"}
    assert sent["device"] == enrolment["device"]
    assert sent["ticket"] == "ticket 1"
    assert len(bytes.fromhex(sent["device"])) == 32
    assert len(sent["values"]) == 4
    assert all(type(cell) is int and 0 <= cell < PLAN.cells for cell in sent["values"])


def test_a_value_that_was_sent_is_not_sent_again(collector: FakeCollector, ledger: Ledger) -> None:
    first = reported(collector, ledger)
    count = len(collector.requests)
    again = reported(collector, ledger, value=1.0)
    assert again.already
    assert (again.epsilon, again.total) == (first.epsilon, first.total)
    assert len(collector.requests) == count


def test_every_campaign_has_a_secret_of_its_own(collector: FakeCollector) -> None:
    for _ in range(5):
        with Ledger(None) as ledger:
            reported(collector, ledger)
    assert len({request.json["device"] for request in collector.sent("reports")}) == 5


def test_categories_are_sent_as_their_numbers(ledger: Ledger) -> None:
    with FakeCollector(KINDS) as fake:
        policy = Policy(categories=("tea", "coffee", "milk"))
        receipt = reported(fake, ledger, policy, "milk")
        assert receipt.reports == len(fake.sent("reports")[0].json["values"])
        assert set(fake.sent("reports")[0].json["values"]) <= {0, 1, 2}


def test_in_the_baseline_both_groups_are_reported_in(ledger: Ledger) -> None:
    with FakeCollector(TWICE) as fake:
        receipt = reported(fake, ledger)
        assert (receipt.groups, receipt.reports, receipt.epsilon) == ((1, 0), 2, 1)


def test_the_largest_tier_within_the_budget_is_asked_for(ledger: Ledger) -> None:
    with FakeCollector(TIERS) as fake:
        policy = Policy(low=0, high=86400, max_epsilon=0.5)
        receipt = reported(fake, ledger, policy)
        assert fake.sent("tickets")[0].json["tier"] == 1
        assert receipt.epsilon <= Fraction(3, 10)
        assert set(receipt.groups) <= set(TIERS.tier_groups(1))


def test_an_invite_is_sent_where_it_is_needed_and_only_there(
    collector: FakeCollector, ledger: Ledger
) -> None:
    reported(collector, ledger, invite="open sesame")
    assert "invite" not in collector.sent("tickets")[0].json
    with FakeCollector(PLAN, access="invite") as fake, Ledger(None) as other:
        with pytest.raises(InvalidParameter, match="invite is needed"):
            reported(fake, other)
        assert fake.sent("tickets") == []
        reported(fake, other, invite="open sesame")
        assert fake.sent("tickets")[0].json["invite"] == "open sesame"


@pytest.mark.parametrize("invite", ["", "two\nlines", 600 * "x"])
def test_an_invite_that_cannot_be_one_is_not_sent_or_repeated(
    invite: str, collector: FakeCollector, ledger: Ledger
) -> None:
    with pytest.raises(InvalidParameter, match="invite must be") as caught:
        reported(collector, ledger, invite=invite)
    assert not invite or invite not in str(caught.value)
    assert collector.requests == []


def test_the_steps_one_by_one_do_the_same(collector: FakeCollector, ledger: Ledger) -> None:
    with Transport(collector.url) as transport:
        device = Device(collector.url, POLICY, ledger, transport)
        enrolment = device.enrol(CAMPAIGN)
        assert ledger.spent() == 0
        entry = device.draw(enrolment, VALUE)
        assert ledger.spent() == enrolment.epsilon == 1
        assert device.draw(enrolment, 0.0) == entry
        receipt = device.send(entry)
    assert collector.sent("reports")[0].json == submission(entry)
    assert receipt.reports == enrolment.reports


def test_steps_out_of_order_are_refused(collector: FakeCollector, ledger: Ledger) -> None:
    with Transport(collector.url) as transport, Ledger(None) as other:
        enrolment = Device(collector.url, POLICY, ledger, transport).enrol(CAMPAIGN)
        stranger = Device(collector.url, POLICY, other, transport)
        with pytest.raises(InvalidParameter, match="enrolment"):
            stranger.draw(enrolment, VALUE)
        entry = other.enrol(collector.url, CAMPAIGN, PLAN.fingerprint, 0)
        with pytest.raises(InvalidParameter, match="must be drawn"):
            stranger.send(entry)
    assert collector.sent("reports") == []


@pytest.mark.parametrize("campaign", ["", "..", "a/b", "a?b", "k3 v9", 65 * "a", "é"])
def test_a_campaign_that_could_be_another_path_is_refused(
    campaign: str, collector: FakeCollector, ledger: Ledger
) -> None:
    with (
        Transport(collector.url) as transport,
        pytest.raises(InvalidParameter, match="campaign must be"),
    ):
        Device(collector.url, POLICY, ledger, transport).report(campaign, VALUE)
    assert collector.requests == []


# Lies


def changed(**keys: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda honest: {**honest, **keys}


def without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda honest: {name: value for name, value in honest.items() if name != key}


def planned(**keys: Any) -> Callable[[dict[str, Any]], Any]:
    """Another plan, with its own true fingerprint if it can have one."""

    def lie(honest: dict[str, Any]) -> Any:
        altered = {**honest["plan"], **keys}
        plan = {name: value for name, value in altered.items() if value is not None}
        try:
            fingerprint = Plan.from_dict(plan).fingerprint
        except ValueError:
            fingerprint = honest["fingerprint"]
        return {**honest, "plan": plan, "fingerprint": fingerprint}

    return lie


def deep(levels: int) -> Any:
    nested: Any = 0
    for _ in range(levels):
        nested = [nested]
    return nested


GREEDY = [{"epsilon": 1.0, "reports": 2, "share": 1.0}]
MANY = [{"epsilon": 0.01, "reports": 1, "share": 1 / (MAX_LIST + 1)}] * (MAX_LIST + 1)
CAMPAIGN_LIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another campaign": (changed(id="other"), "another campaign"),
    "unknown access": (changed(access="all"), "neither open nor by invite"),
    "another fingerprint": (changed(fingerprint=64 * "0"), "fingerprint"),
    "another range": (planned(high=100000), "the plan is for values in"),
    "a narrow range": (planned(low=31337, high=31338), "the plan is for values in"),
    "categories": (
        planned(mechanism="k-rr-integer", categories=["a", "b"], low=None, high=None, cells=None),
        "categories",
    ),
    "floats": (planned(mechanism="piecewise", cells=16384), "not one for devices"),
    "unknown mechanism": (planned(mechanism="plain"), "the plan is not valid"),
    "overspending groups": (planned(groups=GREEDY, min_epsilon=1.0), "the plan is not valid"),
    "too many groups": (planned(groups=MANY, min_epsilon=0.01), "more than 64"),
    "too many tiers": (planned(tiers=[{"epsilon": 0.5}] * 65), "more than 64"),
    "many groups in a tier": (planned(tiers=[{"epsilon": 0.5, "groups": MANY}]), "more than 64"),
    "unknown key": (planned(extra=1), "the plan is not valid"),
    "no plan": (without("plan"), "no 'plan'"),
    "no id": (without("id"), "no 'id'"),
    "plan is text": (changed(plan="piecewise-integer"), "'plan' must be dict"),
    "plan is empty": (changed(plan={}), "the plan is not valid"),
    "huge numbers": (planned(epsilon=10**400), "the plan is not valid"),
    "long words": (planned(mechanism=10**6 * "x"), "the plan is not valid"),
    "groups are text": (planned(groups="all"), "the plan is not valid"),
    "a deep plan": (lambda honest: {**honest, "plan": {"groups": deep(500)}}, "plan"),
    "a list": (lambda honest: [honest], "not a JSON object"),
    "null": (lambda _: None, "not a JSON object"),
}


def grouped(*groups: tuple[Any, Any]) -> Callable[[dict[str, Any]], Any]:
    return changed(groups=[{"group": group, "reports": reports} for group, reports in groups])


TICKET_LIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another campaign": (changed(campaign="other"), "another campaign"),
    "another plan": (changed(fingerprint=64 * "0"), "another plan"),
    "another tier": (changed(tier=1), "tier"),
    "tier is a bool": (changed(tier=False), "must be int, not bool"),
    "more reports": (grouped((2, 5)), "asks for 5 reports"),
    "fewer reports": (grouped((2, 1)), "asks for 1 reports"),
    "reports is a bool": (grouped((0, True)), "must be int"),
    "unknown group": (grouped((3, 4)), "does not have"),
    "negative group": (grouped((-1, 4)), "does not have"),
    "group is a float": (grouped((2.0, 4)), "must be int"),
    "two groups": (grouped((2, 4), (1, 2)), "for 2 groups"),
    "no group": (grouped(), "for 0 groups"),
    "groups are numbers": (changed(groups=[2]), "must be objects"),
    "no ticket": (without("ticket"), "no 'ticket'"),
    "an empty ticket": (changed(ticket=""), "a ticket is"),
    "a long ticket": (changed(ticket=5000 * "t"), "a ticket is"),
    "a broken ticket": (changed(ticket="\ud800"), "a ticket is"),
    "no end": (without("expires_at"), "no 'expires_at'"),
    "a list": (lambda honest: [honest], "not a JSON object"),
}


def refused_before_anything_is_drawn(fake: FakeCollector, ledger: Ledger, match: str) -> None:
    with pytest.raises(CollectorNotTrusted, match=match) as caught:
        reported(fake, ledger)
    assert len(str(caught.value)) < 500
    assert fake.sent("reports") == []
    assert ledger.spent() == 0
    entry = ledger.entry(fake.url, CAMPAIGN)
    assert entry is None or (entry.state, entry.draw.cells) == ("enrolled", ())


@pytest.mark.slow
@pytest.mark.parametrize("lie", CAMPAIGN_LIES)
def test_lies_about_the_campaign_are_refused(
    lie: str, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.lies["campaign"], match = CAMPAIGN_LIES[lie]
    refused_before_anything_is_drawn(collector, ledger, match)
    assert collector.sent("tickets") == []


@pytest.mark.parametrize("lie", TICKET_LIES)
def test_lies_about_the_ticket_are_refused(
    lie: str, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.lies["tickets"], match = TICKET_LIES[lie]
    refused_before_anything_is_drawn(collector, ledger, match)


def test_a_group_of_another_tier_is_refused(ledger: Ledger) -> None:
    with FakeCollector(TIERS) as fake:
        group = TIERS.tier_groups(1).start
        fake.lies["tickets"] = grouped((group, TIERS.all_groups[group].reports))
        refused_before_anything_is_drawn(fake, ledger, "not those of tier 0")


@pytest.mark.parametrize("groups", [[(0, 1)], [(0, 1), (0, 1)], [(0, 1), (1, 1), (0, 1)]])
def test_the_baseline_needs_both_groups_once(groups: list[tuple[int, int]], ledger: Ledger) -> None:
    with FakeCollector(TWICE) as fake:
        fake.lies["tickets"] = grouped(*groups)
        refused_before_anything_is_drawn(fake, ledger, "groups")


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (b"<html>", "not a JSON object"),
        (b"", "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"a":' * 100_000, "not a JSON object"),
        (b'{"id": NaN}', "not a JSON object"),
        (b'{"id": 1, "id": 2}', "not a JSON object"),
        (b'{"id": ' + b"9" * 5000 + b"}", "not a JSON object"),
        (b"\xff\xfe\x00", "not a JSON object"),
        (b" " * (4 * 2**20 + 1), "longer than"),
    ],
)
@pytest.mark.parametrize("kind", ["campaign", "tickets"])
def test_nonsense_is_refused(
    kind: str, body: bytes, match: str, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults[kind].append(status(200, body))
    refused_before_anything_is_drawn(collector, ledger, match)


@pytest.mark.parametrize("code", [201, 204, 301, 302, 307, 308])
def test_a_redirect_is_not_followed_nor_another_good_status_taken(
    code: int, collector: FakeCollector, ledger: Ledger
) -> None:
    with FakeCollector(PLAN) as elsewhere:
        location = f"{elsewhere.url}/v1/campaigns/{CAMPAIGN}"
        collector.faults["campaign"].append(status(code, {}, Location=location))
        refused_before_anything_is_drawn(collector, ledger, f"status {code}|not HTTP")
        assert elsewhere.requests == []


@pytest.mark.parametrize("code", [400, 403, 404, 409, 422])
@pytest.mark.parametrize("body", [{}, {"error": 1}, {"error": {"code": 1, "message": "m"}}, b"<p>"])
def test_an_error_of_another_shape_is_nonsense_too(
    code: int, body: object, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults["tickets"].append(status(code, body))
    refused_before_anything_is_drawn(collector, ledger, "the answer")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


class Liar(HonestCollector):
    """Replaces one member, found by its keys, of each answer that has it."""

    def __init__(self, keys: tuple[str, ...], lie: object) -> None:
        super().__init__(PLAN)
        self.keys, self.lie = keys, lie

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        answer = super().answer(path, request)
        inner: Any = answer
        for key in self.keys[:-1]:
            inner = inner.get(key, {})
        inner[self.keys[-1]] = self.lie
        return answer


KEY_PATHS: list[tuple[str, ...]] = [
    (key,) for key in ("id", "access", "plan", "fingerprint", "ticket", "tier", "groups")
]
KEY_PATHS += [("plan", key) for key in PLAN.to_dict()]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(keys=st.sampled_from(KEY_PATHS), lie=JSON)
def test_an_answer_with_any_member_replaced_is_not_trusted(
    keys: tuple[str, ...], lie: object
) -> None:
    with Ledger(None) as ledger:
        device = Device("https://c.example", POLICY, ledger, Liar(keys, lie))
        try:
            device.enrol(CAMPAIGN)
        except (CollectorNotTrusted, BudgetExceeded):
            return
        except InvalidParameter as fault:
            assert fault.parameter == "invite"  # noqa: PT017


# Refusals and retries


@pytest.mark.parametrize("kind", ["campaign", "tickets", "reports"])
def test_a_refusal_is_raised_with_its_code(
    kind: str, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults[kind].append(refusal(409, "campaign-not-open"))
    with pytest.raises(CollectorRefused, match="One sentence") as caught:
        reported(collector, ledger)
    assert (caught.value.status, caught.value.code) == (409, "campaign-not-open")
    assert not reported(collector, ledger).already


def test_foreign_messages_are_shortened_and_printable(
    collector: FakeCollector, ledger: Ledger
) -> None:
    long = {"error": {"code": "x\x1b[2J", "message": 10_000 * "\n"}}
    collector.faults["tickets"].append(status(403, long))
    with pytest.raises(CollectorRefused) as caught:
        reported(collector, ledger)
    assert len(str(caught.value)) < 700
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("kind", ["campaign", "tickets", "reports"])
@pytest.mark.parametrize(
    "fault", [ANSWER_LOST, NOT_RECEIVED, status(503, {}), status(429, b"slow down")]
)
def test_after_lost_answers_the_identical_request_is_sent(
    kind: str, fault: Any, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults[kind].extend([fault, fault])
    receipt = reported(collector, ledger)
    assert not receipt.already
    bodies = [request.body for request in collector.sent(kind)]
    assert len(bodies) >= 3
    assert len(set(bodies)) == 1
    assert receipt.total == 1
    assert len(collector.accepted) == 1


def test_an_answer_that_never_comes_leaves_the_draw_for_the_next_time(
    collector: FakeCollector, tmp_path: Path
) -> None:
    """Each process ends without an answer, as if killed; each new one sends the same bytes."""
    collector.faults["reports"].extend(9 * [ANSWER_LOST])
    for _ in range(2):
        with Ledger(tmp_path / "ledger.db") as ledger, pytest.raises(CollectorUnreachable):
            reported(collector, ledger)
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert reported(collector, ledger, value=5.0).total == 1
    assert len({request.body for request in collector.sent("reports")}) == 1
    assert len(collector.sent("tickets")) == 1


class Killed(BaseException):
    """Raised where the process would be killed."""


def test_a_device_that_dies_before_sending_sends_the_same_cells_later(
    collector: FakeCollector, tmp_path: Path
) -> None:
    class Dying(Transport):
        def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
            if path.endswith("/reports"):
                raise Killed
            return super().exchange(method, path, body)

    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger, Dying(collector.url) as transport:
        with pytest.raises(Killed):
            Device(collector.url, POLICY, ledger, transport).report(CAMPAIGN, VALUE)
        entry = ledger.entry(collector.url, CAMPAIGN)
    assert entry is not None
    with Ledger(path) as ledger:
        assert ledger.spent() == 1
        receipt = reported(collector, ledger, value=0.0)
        assert receipt.total == 1
    assert collector.sent("reports")[0].json["values"] == list(entry.draw.cells)


def test_a_device_that_dies_while_enrolling_asks_with_the_same_secret(
    collector: FakeCollector, tmp_path: Path
) -> None:
    collector.faults["tickets"].extend(5 * [ANSWER_LOST])
    with Ledger(tmp_path / "ledger.db") as ledger, pytest.raises(CollectorUnreachable):
        reported(collector, ledger)
    with Ledger(tmp_path / "ledger.db") as ledger:
        reported(collector, ledger)
    assert len({request.json["device"] for request in collector.sent("tickets")}) == 1


@pytest.mark.parametrize("cause", ["ticket-expired", "invalid-ticket"])
def test_an_expired_ticket_is_renewed_for_the_same_cells(
    cause: str, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults["reports"].append(refusal(403, cause))
    receipt = reported(collector, ledger)
    first, second = (request.json for request in collector.sent("reports"))
    assert (first["ticket"], second["ticket"]) == ("ticket 1", "ticket 2")
    assert first["values"] == second["values"]
    assert first["device"] == second["device"]
    assert receipt.total == 1


def test_a_ticket_that_expires_again_is_an_error(collector: FakeCollector, ledger: Ledger) -> None:
    collector.faults["reports"].extend(2 * [refusal(403, "ticket-expired")])
    with pytest.raises(CollectorRefused, match="ticket-expired"):
        reported(collector, ledger)
    assert len({tuple(request.json["values"]) for request in collector.sent("reports")}) == 1


def test_a_renewed_ticket_for_another_group_is_refused(
    collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults["reports"].append(refusal(403, "ticket-expired"))
    lies = iter([lambda honest: honest, grouped((1, 2))])
    collector.lies["tickets"] = lambda honest: next(lies)(honest)
    with pytest.raises(CollectorNotTrusted, match="other groups"):
        reported(collector, ledger)
    assert len(collector.sent("reports")) == 1
    assert ledger.spent() == 1


def test_a_plan_that_changes_after_enrolment_is_refused(
    collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults["tickets"].append(refusal(409, "campaign-not-open"))
    with pytest.raises(CollectorRefused):
        reported(collector, ledger)
    collector.plan = Plan.new("piecewise-integer", epsilon=0.5, low=0, high=86400)
    refused_before_anything_is_drawn(collector, ledger, "has changed")


@pytest.mark.parametrize("answer", [{}, {"status": "refused"}, {"status": ["accepted"]}])
def test_only_accepted_is_accepted(
    answer: object, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.lies["reports"] = lambda _: answer
    with pytest.raises(CollectorNotTrusted, match="accepted"):
        reported(collector, ledger)
    del collector.lies["reports"]
    assert not reported(collector, ledger).already
    assert len({request.body for request in collector.sent("reports")}) == 1


# Budgets


def test_a_plan_beyond_the_policy_is_refused(collector: FakeCollector, ledger: Ledger) -> None:
    policy = Policy(low=0, high=86400, max_epsilon=0.9)
    with pytest.raises(BudgetExceeded, match=r"max_epsilon leaves epsilon 0.9, .* needs 1"):
        reported(collector, ledger, policy)
    assert collector.sent("tickets") == []
    assert ledger.spent() == 0


def spend(
    ledger: Ledger, campaign: str, epsilon: str, collector: str = "https://another.example"
) -> None:
    entry = ledger.enrol(collector, campaign, "f00", 0)
    ledger.record(entry, Draw("t", (0,), (1,), Fraction(epsilon)), Fraction(100))


def test_budgets_are_exact_fractions(ledger: Ledger) -> None:
    """In floats, 0.1 + 0.2 is more than 0.3."""
    spend(ledger, "first", "0.1")
    plan = Plan.new("piecewise-integer", epsilon=0.2, min_epsilon=0.2, low=0, high=86400)
    with FakeCollector(plan) as fake:
        policy = Policy(low=0, high=86400, max_epsilon=0.3, lifetime_epsilon=0.3)
        assert reported(fake, ledger, policy).total == Fraction(3, 10)
        spend(ledger, "second", "0.0001")
    with FakeCollector(plan) as fake, pytest.raises(BudgetExceeded, match="lifetime_epsilon"):
        reported(fake, ledger, policy)


def test_what_is_left_of_the_lifetime_budget_does_not_change_the_tier(ledger: Ledger) -> None:
    """A smaller tier would tell the collector what was spent elsewhere: the device declines."""
    spend(ledger, "first", "7.5")
    with FakeCollector(TIERS) as fake:
        with pytest.raises(BudgetExceeded, match=r"lifetime_epsilon leaves epsilon 0.5, .* 1$"):
            reported(fake, ledger)
        assert not fake.sent("tickets")
        assert ledger.entry(fake.url, CAMPAIGN) is None
        reported(fake, ledger, Policy(low=0, high=86400, max_epsilon=0.4))
        assert fake.sent("tickets")[0].json["tier"] == 1


def test_one_collector_cannot_take_all_of_the_lifetime_budget(ledger: Ledger) -> None:
    with FakeCollector(PLAN) as fake, FakeCollector(PLAN) as other:
        for number in range(4):
            spend(ledger, f"before {number}", "1", collector=fake.url)
        with pytest.raises(BudgetExceeded, match=r"collector_epsilon leaves epsilon 0, .* needs 1"):
            reported(fake, ledger)
        assert not fake.sent("tickets")
        assert reported(other, ledger).total == 5
        most = Policy(low=0, high=86400, collector_epsilon=8)
        assert reported(fake, ledger, most).total == 6


def test_cells_are_not_sent_once_the_collector_s_share_is_smaller(ledger: Ledger) -> None:
    with FakeCollector(PLAN) as fake:
        with Transport(fake.url, retries=QUICK) as transport:
            device = Device(fake.url, POLICY, ledger, transport)
            entry = device.draw(device.enrol(CAMPAIGN), VALUE)
            strict = Policy(low=0, high=86400, collector_epsilon=0.5)
            with pytest.raises(BudgetExceeded, match="collector_epsilon"):
                Device(fake.url, strict, ledger, transport).send(entry)
        assert not fake.sent("reports")


def test_two_devices_cannot_both_spend_the_last_of_the_budget(tmp_path: Path) -> None:
    """Both have their tickets, and have passed every check, before either draws."""
    path = tmp_path / "ledger.db"
    both = threading.Barrier(2)
    outcomes: list[object] = []

    class Waiting(Transport):
        def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
            answer = super().exchange(method, path, body)
            if path.endswith("/tickets"):
                both.wait(HANG_SECONDS)
            return answer

    def run(url: str) -> None:
        policy = Policy(low=0, high=86400, lifetime_epsilon=1.5)
        with Ledger(path) as ledger, Waiting(url) as transport:
            try:
                outcomes.append(Device(url, policy, ledger, transport).report(CAMPAIGN, VALUE))
            except BudgetExceeded as fault:
                outcomes.append(fault)

    with FakeCollector(PLAN) as one, FakeCollector(PLAN) as two:
        threads = [threading.Thread(target=run, args=(fake.url,)) for fake in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(one.sent("reports")) + len(two.sent("reports")) == 1
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["BudgetExceeded", "Receipt"]
    with Ledger(path) as ledger:
        assert ledger.spent() == 1


def test_two_processes_in_one_campaign_send_the_same_cells(
    collector: FakeCollector, tmp_path: Path
) -> None:
    def run() -> None:
        with Ledger(tmp_path / "ledger.db") as ledger:
            reported(collector, ledger)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(request.json["values"]) for request in collector.sent("reports")}) == 1
    assert len(collector.accepted) == 1


@pytest.mark.parametrize(
    ("limit", "stricter"),
    [
        ("max_epsilon", Policy(low=0, high=86400, max_epsilon=0.5)),
        ("lifetime_epsilon", Policy(low=0, high=86400, lifetime_epsilon=0.5)),
    ],
)
def test_a_policy_that_became_stricter_holds_for_what_is_not_sent_yet(
    limit: str, stricter: Policy, collector: FakeCollector, ledger: Ledger
) -> None:
    collector.faults["reports"].append(refusal(409, "campaign-not-open"))
    with pytest.raises(CollectorRefused):
        reported(collector, ledger)
    with pytest.raises(BudgetExceeded, match=limit):
        reported(collector, ledger, stricter)
    assert len(collector.sent("reports")) == 1


def test_a_ticket_beyond_the_policy_is_refused_whatever_tier_it_is_for() -> None:
    """The tier is chosen within the budget already; the check of a ticket does not rely on it."""
    honest = HonestCollector(PLAN)
    answer = honest.answer("/tickets", {"tier": 0})
    policy = Policy(low=0, high=86400, max_epsilon=0.5)
    with pytest.raises(BudgetExceeded, match="max_epsilon"):
        checked_ticket(answer, Offer(CAMPAIGN, "open", PLAN), 0, policy)


def test_the_tier_of_the_first_request_is_never_changed(ledger: Ledger) -> None:
    with FakeCollector(TIERS) as fake:
        fake.faults["tickets"].append(refusal(409, "campaign-not-open"))
        with pytest.raises(CollectorRefused):
            reported(fake, ledger)
        spend(ledger, "meanwhile", "7.5")
        with pytest.raises(BudgetExceeded, match=r"lifetime_epsilon leaves epsilon 0.5, .* 1$"):
            reported(fake, ledger)
        assert [request.json["tier"] for request in fake.sent("tickets")] == [0]


def test_a_device_without_a_ledger_opens_and_closes_the_users_own(
    collector: FakeCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unpoison.client.ledger.default_ledger_path", lambda: tmp_path / "own.db")
    with Device(collector.url, POLICY) as device:
        assert device.report(CAMPAIGN, VALUE).total == 1
    with pytest.raises(InvalidFile, match="closed"):
        device.report(CAMPAIGN, VALUE)
    with Ledger(tmp_path / "own.db") as ledger:
        assert reported(collector, ledger).already
    with pytest.raises(InvalidParameter, match="unless insecure"):
        Device("http://collector.example", POLICY)


# The value stays here


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "31337.1234567", None, True, [31337.1], 3 + 4j]
)
def test_what_is_no_number_is_refused_before_the_network(
    value: object, collector: FakeCollector, ledger: Ledger
) -> None:
    with pytest.raises(InvalidParameter, match="value must be a finite number") as caught:
        reported(collector, ledger, value=value)
    assert "31337" not in str(caught.value)
    assert collector.requests == []
    assert ledger.entry(collector.url, CAMPAIGN) is None


@pytest.mark.parametrize("value", ["Earl Grey", 1, None, ["tea"], np.array(["tea"])])
def test_what_is_no_category_is_refused_before_the_network(value: object, ledger: Ledger) -> None:
    with FakeCollector(KINDS) as fake:
        policy = Policy(categories=("tea", "coffee", "milk"))
        with pytest.raises(InvalidParameter, match="categories") as caught:
            reported(fake, ledger, policy, value)
        assert "Earl Grey" not in str(caught.value)
        assert fake.requests == []


@pytest.mark.parametrize(
    "value", [-1e300, -1, 10**400, -(10**400), 86400.5, 1e308, Fraction(-1, 3)]
)
def test_a_value_outside_the_range_looks_the_same_from_outside(
    value: object, collector: FakeCollector, ledger: Ledger
) -> None:
    receipt = reported(collector, ledger, value=value)
    assert receipt.reports == 4
    shapes = [(request.method, request.path) for request in collector.requests]
    with FakeCollector(PLAN) as fake, Ledger(None) as other:
        reported(fake, other)
        assert [(request.method, request.path) for request in fake.requests] == shapes


@pytest.mark.parametrize(("value", "end"), [(-5, 0.0), (10**400, 86400.0), (7.5, 7.5), (0, 0.0)])
def test_a_number_outside_counts_as_the_nearest_end(value: object, end: float) -> None:
    assert POLICY.encode(value) == end


def test_the_value_is_in_no_request_and_not_in_the_ledger(
    collector: FakeCollector, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.db"
    collector.faults["reports"].append(refusal(409, "campaign-not-open"))
    with Ledger(path) as ledger:
        with pytest.raises(CollectorRefused) as caught:
            reported(collector, ledger)
        assert "31337" not in repr(caught.value)
        receipt = reported(collector, ledger)
        entry = ledger.entry(collector.url, CAMPAIGN)
    assert "31337" not in repr(receipt)
    assert entry is not None
    assert entry.device not in repr(entry)
    assert "ticket 1" not in repr(entry)
    cells = json.dumps(list(entry.draw.cells)).encode()
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    normalised = PLAN.normalise_one(VALUE)
    assert cells in stored
    requests = b"".join(
        request.path.encode() + repr(request.headers).encode() + request.body
        for request in collector.requests
    )
    for text in (repr(VALUE), "31337", repr(normalised), repr(VALUE / 86400)):
        assert text.encode() not in stored.replace(cells, b"")
        assert text.encode() not in requests.replace(cells.replace(b" ", b""), b"")
    for number in (VALUE, normalised, VALUE / 86400):
        for order in "<>":
            assert np.array(number, dtype=f"{order}f8").tobytes() not in stored + requests


def test_requests_carry_no_more_than_they_need(collector: FakeCollector, ledger: Ledger) -> None:
    reported(collector, ledger)
    needed = {"Host", "Accept", "Accept-Encoding", "Content-Type", "Content-Length"}
    assert {name for request in collector.requests for name in request.headers} <= needed
    posts = [request.headers for request in collector.requests if request.method == "POST"]
    assert {headers["Content-Type"] for headers in posts} == {"application/json"}


def fits(cells: list[int], plan: Plan, group: int, encoded: float) -> bool:
    """A chi-square test of the mechanism's own probabilities, in a few buckets."""
    mechanism = plan.group_mechanisms[group]
    edges = mechanism.grid()[:: max(1, mechanism.cells // 8)]
    chances = mechanism.cell_probabilities(plan.normalise(np.array([encoded])), edges)[0]
    counts, _ = np.histogram(cells, edges)
    return bool(stats.chisquare(counts, len(cells) * chances / chances.sum()).pvalue > 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("value", [20_000.0, 1e9])
def test_cells_are_distributed_as_the_mechanism_says(value: float) -> None:
    transport = HonestCollector(PLAN, group=0)
    for _ in range(1500):
        with Ledger(None) as ledger:
            Device("https://c.example", POLICY, ledger, transport).report(CAMPAIGN, value)
    cells = [cell for values in transport.accepted.values() for cell in values]
    assert fits(cells, PLAN, 0, POLICY.encode(value))
    assert not fits(cells, PLAN, 0, 86400.0 - POLICY.encode(value))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [PLAN, KINDS], ids=["numbers", "categories"])
def test_each_groups_cells_are_drawn_at_its_own_budget(plan: Plan) -> None:
    count = 4000
    submissions = [draw_cells(plan, (0, 1), 1.0, SystemGenerator()) for _ in range(count)]
    cut = plan.groups[0].reports
    assert fits([cell for cells in submissions for cell in cells[:cut]], plan, 0, 1.0)
    assert fits([cell for cells in submissions for cell in cells[cut:]], plan, 1, 1.0)


# The policy


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({}, "needs low and high"),
        ({"low": 0}, "needs low and high"),
        ({"low": 1, "high": 1}, "must be below high"),
        ({"low": -1e308, "high": 1e308}, "must be below high"),
        ({"low": math.nan, "high": 1}, "low must be a finite number"),
        ({"low": 0, "high": "1"}, "high must be a finite number"),
        ({"low": 0, "high": 1, "categories": ("a", "b")}, "do not go with"),
        ({"low": 0, "high": 1, "step": 0}, "step must be positive"),
        ({"low": 0, "high": 1, "step": 0.3}, "step must divide"),
        ({"low": 0, "high": 1, "step": "1"}, "step must be a finite number"),
        ({"categories": ("a", "b"), "step": 1}, "step does not go with"),
        ({"categories": ("a",)}, "at least 2"),
        ({"categories": ("a", "a")}, "must differ"),
        ({"categories": ("a", "")}, "not empty"),
        ({"categories": "ab"}, "list of names"),
        ({"low": 0, "high": 1, "max_epsilon": 0}, "max_epsilon must be positive"),
        ({"low": 0, "high": 1, "lifetime_epsilon": -1}, "lifetime_epsilon must be positive"),
        ({"low": 0, "high": 1, "max_epsilon": math.inf}, "max_epsilon must be a finite"),
    ],
)
def test_a_policy_must_make_sense(keys: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidParameter, match=match):
        Policy(**keys)


@pytest.mark.parametrize(("ours", "theirs"), [(None, 1), (1, None), (1, 2)])
def test_the_step_must_be_the_plans(ours: float | None, theirs: float | None) -> None:
    plan = Plan.new("piecewise-integer", 0.5, low=0, high=10, step=theirs)
    with pytest.raises(CollectorNotTrusted, match="step"):
        offered_plan(plan.to_dict(), Policy(low=0, high=10, step=ours))
    assert offered_plan(plan.to_dict(), Policy(low=0, high=10, step=theirs)) == plan


@pytest.mark.slow
def test_cells_of_a_value_between_steps_are_those_of_the_nearest() -> None:
    plan = Plan.new("piecewise-integer", 4.0, min_epsilon=4.0, low=0, high=10, step=5)
    cells = [draw_cells(plan, (0,), 6.9, SystemGenerator())[0] for _ in range(4000)]
    assert fits(cells, plan, 0, 5.0)
    assert not fits(cells, plan, 0, 6.9)


def test_categories_must_be_the_plans_in_the_plans_order(ledger: Ledger) -> None:
    with FakeCollector(KINDS) as fake:
        policy = Policy(categories=("coffee", "tea", "milk"))
        with pytest.raises(CollectorNotTrusted, match="exactly"):
            reported(fake, ledger, policy, "tea")
        assert fake.sent("tickets") == []
