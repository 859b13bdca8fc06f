"""The browser's client with an issuer: tokens of the standard, checked, kept, and shown once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.collector_protocol import serving_in_thread
from support.raw_http import NO_RATE_LIMITS
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.running_issuers import RunningIssuer, running_issuer
from support.token_holders import ISSUER_NAME, key_holder
from unpoison.privacy_pass import Token, from_base64url

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

VECTORS = json.loads(
    (Path(__file__).parents[1] / "privacy_pass" / "vectors" / "rfc9578.json").read_text("utf-8")
)
HOLDER, OTHER = key_holder("first"), key_holder("second")
POLICY = {"low": 0, "high": 100}
REPORT = """async ([script, options, faults]) => {
    const requests = [];
    const hexOf = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
    const watchedFetch = async (address, request) => {
        const name = new URL(address).pathname.split("/").at(-1);
        const { body } = request;
        const account = request.headers?.Authorization ?? null;
        requests.push({ name, account, body: body instanceof Uint8Array ? hexOf(body) : body });
        const response = await fetch(address, request);
        const fault = (faults[name] ?? []).shift();
        if (fault === "lost") throw new TypeError("the answer is lost");
        return fault === undefined ? response : new Response(...fault);
    };
    const { report } = await import(script);
    const sleep = async () => {};
    const show = (error) => ({ code: error.code, message: error.message });
    const outcome = await report({ ...options, sleep, fetch: watchedFetch }).catch(show);
    return { ...outcome, requests };
}"""
FINALISE = """async ([script, pending, response]) => {
    const { requestOf, finalise } = await import(script);
    const bytesOf = (text) => Uint8Array.from(text.match(/../g), (digits) => parseInt(digits, 16));
    const request = Array.from(await requestOf(pending));
    return [request, await finalise(pending, bytesOf(response)).catch((error) => error.message)];
}"""


class _AppPage(BaseHTTPRequestHandler):
    """The page of an application that reports to a collector elsewhere."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><html lang=en><title>An application</title>")

    def log_message(self, *_: object) -> None:
        """Nothing is looked at."""


@pytest.fixture(scope="module")
def app() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _AppPage)
    with serving_in_thread(server):
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(scope="module")
def server(app: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    settings = {"allowed_origins": [app], **NO_RATE_LIMITS}
    with in_process_collector(tmp_path_factory.mktemp("collector"), **settings) as running:
        yield running


@pytest.fixture(scope="module")
def issuer(app: str) -> Iterator[RunningIssuer]:
    with running_issuer([HOLDER], tokens=1, origins=[app]) as running:
        yield running


@pytest.fixture
def campaign(server: InProcessCollector, issuer: RunningIssuer) -> RunningCampaign:
    return create(server, issuer)


@pytest.fixture
def page(context: BrowserContext, app: str) -> Page:
    page = context.new_page()
    page.goto(app)
    return page


def create(server: InProcessCollector, issuer: RunningIssuer, **fields: Any) -> RunningCampaign:
    return HOLDER.create_campaign(server, issuer={**HOLDER.body(name=issuer.name), **fields})


def report(
    page: Page,
    campaign: RunningCampaign,
    issuer: dict[str, Any] | None = None,
    faults: dict[str, list[Any]] | None = None,
) -> dict[str, Any]:
    """The receipt, or the error's code and message; and what was sent."""
    url = campaign.server.url
    options = {"collector": url, "campaign": campaign.id, "value": 42, "policy": POLICY}
    if issuer is not None:
        options["issuer"] = issuer
    outcome = page.evaluate(REPORT, [f"{url}/client.js", options, faults or {}])
    assert isinstance(outcome, dict)
    return outcome


def known(issuer: RunningIssuer, **fields: Any) -> dict[str, Any]:
    return {"url": issuer.url, "account": issuer.account(), **fields}


def bodies(outcome: dict[str, Any], name: str) -> list[str]:
    return [request["body"] for request in outcome["requests"] if request["name"] == name]


def enrolled(campaign: RunningCampaign) -> int:
    return int(campaign.status()["enrolled"])


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=["context", "no context"])
def test_requests_and_tokens_are_those_of_the_standard(
    page: Page, server: InProcessCollector, vector: dict[str, str]
) -> None:
    token = bytes.fromhex(vector["token"])
    pending = {
        "key": VECTORS["pkS"],
        "challengeDigest": Token.decode(token).challenge_digest.hex(),
        "nonce": vector["nonce"],
        "salt": vector["salt"],
        "factor": vector["blind"],
    }
    script = f"{server.url}/privacy-pass.js"
    request, text = page.evaluate(FINALISE, [script, pending, vector["token_response"]])
    assert bytes(request).hex() == vector["token_request"]
    assert from_base64url(text) == token
    wrong = vector["token_response"][:-2] + "00"
    assert page.evaluate(FINALISE, [script, pending, wrong])[1] == (
        "the issuer's signature is not valid"
    )


def test_a_browser_reports_with_a_token(
    page: Page, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    outcome = report(page, campaign, known(issuer))
    assert outcome.get("already") is False, outcome
    names = [request["name"] for request in outcome["requests"]]
    directory = "private-token-issuer-directory"
    assert names == [campaign.id, directory, "token-request", "tickets", "reports"]
    assert campaign.status()["submissions"] == 1
    assert report(page, campaign)["already"] is True
    (ticket,) = bodies(outcome, "tickets")
    token = Token.decode(from_base64url(json.loads(ticket)["token"]))
    (asked,) = bodies(outcome, "token-request")
    for part in (token.nonce, token.challenge_digest, token.signature):
        assert part.hex() not in asked
    with_account = [request["name"] for request in outcome["requests"] if request["account"]]
    assert with_account == ["token-request"]


def test_after_lost_answers_the_identical_request_and_token_are_sent(
    page: Page, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    account = known(issuer)
    gone = 6 * ["lost"]
    first = report(page, campaign, account, {"token-request": [*gone]})
    assert first["code"] == "unavailable"
    second = report(page, campaign, account, {"token-request": ["lost"], "tickets": [*gone]})
    assert second["code"] == "unavailable"
    page.reload()
    third = report(page, campaign)
    assert third.get("already") is False, third
    asked = [body for outcome in (first, second) for body in bodies(outcome, "token-request")]
    assert len(asked) == 8
    assert len(set(asked)) == 1
    shown = [body for outcome in (second, third) for body in bodies(outcome, "tickets")]
    assert len(shown) == 7
    assert len(set(shown)) == 1
    assert enrolled(campaign) == 1


def test_an_account_takes_part_once(
    page: Page, server: InProcessCollector, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    account = known(issuer)
    assert report(page, campaign, account)["already"] is False
    refused = report(page, create(server, issuer), account)
    assert refused["code"] == "no-tokens-left"


def test_a_campaign_by_token_needs_an_issuer(page: Page, campaign: RunningCampaign) -> None:
    assert report(page, campaign)["code"] == "invalid-token"
    assert enrolled(campaign) == 0


@pytest.mark.parametrize("answer", ["", 255 * "A", 256 * "A"])
def test_a_signature_that_is_not_valid_is_not_shown_to_the_collector(
    page: Page, campaign: RunningCampaign, issuer: RunningIssuer, answer: str
) -> None:
    outcome = report(page, campaign, known(issuer), {"token-request": [[answer]]})
    assert outcome["code"] == "token-refused"
    assert "signature" in outcome["message"]
    assert bodies(outcome, "tickets") == []


def check_refused(outcome: dict[str, Any], words: str) -> None:
    assert outcome["code"] == "token-refused", outcome
    assert words in outcome["message"]
    assert bodies(outcome, "token-request") == bodies(outcome, "tickets") == []


def test_keys_and_issuers_that_are_not_the_pages_are_refused(
    page: Page, server: InProcessCollector, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    foreign = create(server, issuer, key=OTHER.key.pem)
    check_refused(report(page, foreign, known(issuer)), "not in the issuer's directory")
    named = create(server, issuer, name=ISSUER_NAME)
    check_refused(report(page, named, known(issuer)), "another issuer")
    pinned = known(issuer, key=OTHER.key.pem)
    check_refused(report(page, campaign, pinned), "another key")
    assert report(page, campaign, known(issuer, key=HOLDER.key.pem))["already"] is False


def test_challenges_for_others_are_refused(
    page: Page, server: InProcessCollector, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    elsewhere = create(server, issuer, origins=["collector.example"])
    check_refused(report(page, elsewhere, known(issuer)), "not for this collector")
    here = create(server, issuer, origins=[f"127.0.0.1:{server.port}"])
    assert report(page, here, known(issuer))["already"] is False
    offer = server.request("GET", campaign.path).json
    other = server.request("GET", create(server, issuer).path).json
    lie = json.dumps({**offer, "token_challenge": other["token_challenge"]})
    outcome = report(page, campaign, known(issuer), {campaign.id: [[lie]]})
    check_refused(outcome, "not for this campaign")


@pytest.mark.parametrize("field", ["token_challenge", "token_key"])
@pytest.mark.parametrize("lie", ["", "AAI", "!", 7, None])
def test_terms_that_make_no_sense_are_refused(
    page: Page, campaign: RunningCampaign, issuer: RunningIssuer, field: str, lie: object
) -> None:
    offer = campaign.server.request("GET", campaign.path).json
    text = json.dumps({**offer, field: lie})
    outcome = report(page, campaign, known(issuer), {campaign.id: [[text]]})
    assert outcome["code"] == "token-refused"
    assert bodies(outcome, "tickets") == []


def test_terms_that_change_cost_no_second_token(
    page: Page, server: InProcessCollector, campaign: RunningCampaign, issuer: RunningIssuer
) -> None:
    account = known(issuer)
    assert report(page, campaign, account, {"tickets": 6 * ["lost"]})["code"] == "unavailable"
    offer = server.request("GET", campaign.path).json
    from unpoison.privacy_pass import campaign_challenge, to_base64url

    origin = f"127.0.0.1:{server.port}"
    changed = campaign_challenge(campaign.id, issuer.name, (origin,)).encode()
    lie = json.dumps({**offer, "token_challenge": to_base64url(changed)})
    outcome = report(page, campaign, account, {campaign.id: [[lie]]})
    check_refused(outcome, "others than it asked for before")


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("", "not in the issuer's directory"),
        ("[]", "not in the issuer's directory"),
        ('{"token-keys": 7}', "not in the issuer's directory"),
        ('{"token-keys": [KEY]}', "elsewhere"),
        ('{"issuer-request-uri": "https://b.example/", "token-keys": [KEY]}', "elsewhere"),
    ],
)
def test_a_directory_that_makes_no_sense_is_refused(
    page: Page, campaign: RunningCampaign, issuer: RunningIssuer, directory: str, words: str
) -> None:
    honest = issuer.request("GET", "/.well-known/private-token-issuer-directory").json
    text = directory.replace("KEY", json.dumps(honest["token-keys"][0]))
    faults = {"private-token-issuer-directory": [[text]]}
    check_refused(report(page, campaign, known(issuer), faults), words)


@pytest.mark.parametrize(
    "fields",
    [{"url": "http://login.example"}, {"url": "nothing"}, {"account": "a b"}, {"key": "x"}],
)
def test_an_issuer_that_makes_no_sense_is_refused(
    page: Page,
    server: InProcessCollector,
    campaign: RunningCampaign,
    issuer: RunningIssuer,
    fields: dict[str, Any],
) -> None:
    outcome = report(page, campaign, known(issuer, **fields))
    assert outcome["code"] == "invalid-request"
    assert enrolled(campaign) == 0


def test_other_campaigns_load_nothing_for_tokens(
    page: Page, server: InProcessCollector, issuer: RunningIssuer
) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    outcome = report(page, server.create_campaign(access="open"), known(issuer))
    assert outcome["already"] is False
    assert not [url for url in loaded if "privacy-pass" in url or issuer.url in url]


def test_the_collectors_own_form_says_that_it_cannot_report(
    context: BrowserContext, campaign: RunningCampaign
) -> None:
    page = context.new_page()
    page.goto(f"{campaign.server.url}/campaigns/{campaign.id}/report")
    page.get_by_text("Devices need a token for this campaign.").wait_for()
    assert not page.locator("#report-form").is_visible()
