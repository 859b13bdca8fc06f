"""The issuer: who gets tokens, how many, and what it keeps and says."""

from __future__ import annotations

import hashlib
import logging
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.running_collectors import Reply
from support.running_issuers import RunningIssuer, running_issuer
from support.token_holders import key_holder
from unpoison import InvalidFile, InvalidParameter
from unpoison.issuer.refusals import REFUSALS, Refusal
from unpoison.issuer.register import Register
from unpoison.issuer.signing_keys import SigningKeys, make_key_files
from unpoison.issuer.wrong_accounts import MOST, SECONDS, WrongAccounts
from unpoison.privacy_pass import (
    IssuerKey,
    PendingToken,
    TokenChallenge,
    from_base64url,
)

pytestmark = pytest.mark.server
CHALLENGE = TokenChallenge("login.example")
DIRECTORY = "/.well-known/private-token-issuer-directory"
REQUEST_TYPE = "application/private-token-request"
KEYS = [key_holder("first"), key_holder("second")]


@pytest.fixture(scope="module")
def issuer() -> Iterator[RunningIssuer]:
    with running_issuer(KEYS, tokens=2) as running:
        yield running


def pending(place: int = 0) -> PendingToken:
    return PendingToken.new(KEYS[place].key, CHALLENGE)


def ask(issuer: RunningIssuer, account: str, body: bytes) -> Reply:
    headers = {"Authorization": f"Bearer {account}", "Content_Type": REQUEST_TYPE}
    return issuer.request("POST", "/token-request", body, **headers)


def test_the_directory_has_the_form_of_the_standard(issuer: RunningIssuer) -> None:
    reply = issuer.request("GET", DIRECTORY)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/private-token-issuer-directory"
    assert "max-age" in reply.headers["cache-control"]
    assert reply.json["issuer-request-uri"] == "/token-request"
    assert [entry["token-type"] for entry in reply.json["token-keys"]] == [2, 2]
    keys = [from_base64url(entry["token-key"]) for entry in reply.json["token-keys"]]
    assert keys == [holder.key.der for holder in KEYS]


def test_an_account_gets_a_valid_token(issuer: RunningIssuer) -> None:
    for place in (0, 1):
        item = pending(place)
        reply = ask(issuer, issuer.account(), item.request().encode())
        assert reply.status == 200
        assert reply.headers["content-type"] == "application/private-token-response"
        assert reply.headers["cache-control"] == "no-store"
        assert item.finalise(reply.body).is_valid(KEYS[place].key, CHALLENGE)


def test_an_account_gets_no_more_tokens_of_a_key_than_allowed(issuer: RunningIssuer) -> None:
    account = issuer.account()
    replies = [ask(issuer, account, pending().request().encode()) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 403]
    assert replies[2].code == "no-tokens-left"
    assert ask(issuer, account, pending(1).request().encode()).status == 200, "of another key"
    assert ask(issuer, issuer.account(), pending().request().encode()).status == 200


def test_requests_at_once_get_no_more_either(issuer: RunningIssuer) -> None:
    account = issuer.account()
    bodies = [pending().request().encode() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda body: ask(issuer, account, body), bodies))
    assert sorted(reply.status for reply in replies) == [200, 200] + 6 * [403]


def test_the_identical_request_is_answered_again_and_counted_once(issuer: RunningIssuer) -> None:
    account, body = issuer.account(), pending().request().encode()
    first = ask(issuer, account, body)
    assert [ask(issuer, account, body).body for _ in range(3)] == 3 * [first.body]
    assert ask(issuer, account, pending().request().encode()).status == 200
    assert ask(issuer, account, pending().request().encode()).status == 403
    assert ask(issuer, account, body).body == first.body


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer nobody", "Basic YTpi"])
def test_without_an_account_there_is_no_token(issuer: RunningIssuer, header: str) -> None:
    body = pending().request().encode()
    headers = {"Authorization": header, "Content_Type": REQUEST_TYPE}
    reply = issuer.request("POST", "/token-request", body, **headers)
    assert (reply.status, reply.code) == (401, "unauthorized")
    assert reply.headers["www-authenticate"] == "Bearer"


def test_wrong_credentials_are_limited_and_right_ones_are_let_through() -> None:
    with running_issuer(KEYS[:1]) as issuer:
        replies = [ask(issuer, f"guess {number}", b"") for number in range(MOST + 2)]
        assert [reply.status for reply in replies] == [401] * MOST + [429] * 2
        assert replies[-1].code == "rate-limited"
        assert 1 <= int(replies[-1].headers["retry-after"]) <= SECONDS
        assert ask(issuer, issuer.account(), pending().request().encode()).status == 200
        assert ask(issuer, "another guess", b"").status == 429


def test_addresses_are_limited_by_themselves_and_for_a_minute() -> None:
    moment = 0.0
    wrong = WrongAccounts(clock=lambda: moment)
    for number in range(MOST):
        assert wrong.refusal(f"2001:db8::{number:x}").code == "unauthorized"
    moment = SECONDS - 1.5
    refusal = wrong.refusal("2001:db8::ffff:1")
    assert (refusal.code, refusal.retry_after) == ("rate-limited", 2)
    assert wrong.refusal("2001:db8:0:1::1").code == "unauthorized"
    assert wrong.refusal("192.0.2.1").code == "unauthorized"
    moment = float(SECONDS)
    assert wrong.refusal("2001:db8::1").code == "unauthorized"


def test_no_more_addresses_are_remembered_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.issuer.wrong_accounts.MOST_ADDRESSES", 2)
    wrong = WrongAccounts(clock=lambda: 0.0)
    for _ in range(MOST + 1):
        refusal = wrong.refusal("192.0.2.1")
    assert refusal.code == "rate-limited"
    for address in ("192.0.2.2", "::ffff:192.0.2.3"):
        assert wrong.refusal(address).code == "unauthorized"
    assert wrong.refusal("192.0.2.1").code == "unauthorized", "it was forgotten"


def test_a_removed_account_gets_no_more_tokens_and_its_last_one_stays_valid(
    tmp_path: Path,
) -> None:
    path = tmp_path / "issuer.db"
    with running_issuer(KEYS[:1], path, tokens=2) as issuer:
        leaving, staying = issuer.account(), issuer.account()
        item = pending()
        token = item.finalise(ask(issuer, leaving, item.request().encode()).body)
        # As the command does it beside a running issuer.
        with Register(path) as register:
            assert register.remove_accounts([leaving, "nobody"]) == 1
        assert ask(issuer, leaving, pending().request().encode()).code == "unauthorized"
        assert ask(issuer, leaving, item.request().encode()).code == "unauthorized"
        assert ask(issuer, staying, pending().request().encode()).status == 200
    assert token.is_valid(KEYS[0].key, CHALLENGE)
    removed = hashlib.sha256(leaving.encode()).digest()
    assert removed not in path.read_bytes()


def test_a_key_that_replaces_another_counts_together_with_it(tmp_path: Path) -> None:
    first, second = (holder.key for holder in KEYS)
    third = key_holder("third").key
    with running_issuer(KEYS, tmp_path / "issuer.db") as issuer:
        before, after = issuer.account(), issuer.account()
        old = pending(0)
        answer = ask(issuer, before, old.request().encode())
        issuer.register.replace_key(first.id, second.id)
        issuer.register.replace_key(second.id, third.id)
        assert ask(issuer, before, pending(1).request().encode()).code == "no-tokens-left"
        assert ask(issuer, before, old.request().encode()).body == answer.body
        item = pending(1)
        token = item.finalise(ask(issuer, after, item.request().encode()).body)
        assert token.is_valid(second, CHALLENGE)
        assert ask(issuer, after, pending(0).request().encode()).code == "no-tokens-left"
        with pytest.raises(Refusal, match="all its tokens"):
            issuer.register.count(after, third.id, b"of the newest", most=1)


def unknown_key_id() -> int:
    known = {holder.key.truncated_id for holder in KEYS}
    return next(number for number in range(256) if number not in known)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00\x02",
        bytes(259),
        b"\x00\x02" + bytes([KEYS[0].key.truncated_id]) + b"\xff" * 256,
        b"\x00\x02" + bytes([unknown_key_id()]) + bytes(256),
        pending().request().encode() + b"!",
        bytes(10**6),
    ],
    ids=["empty", "short", "type", "number", "key", "long", "very long"],
)
def test_what_is_no_request_is_refused_and_not_counted(issuer: RunningIssuer, body: bytes) -> None:
    account = issuer.account()
    reply = ask(issuer, account, body)
    assert (reply.status, reply.code) == (422, "invalid-request")
    good = [ask(issuer, account, pending().request().encode()).status for _ in range(2)]
    assert good == [200, 200]


def test_other_media_types_addresses_and_methods_are_refused(issuer: RunningIssuer) -> None:
    headers = {"Authorization": f"Bearer {issuer.account()}", "Content_Type": "application/json"}
    reply = issuer.request("POST", "/token-request", pending().request().encode(), **headers)
    assert (reply.status, reply.code) == (415, "unsupported-media-type")
    assert issuer.request("GET", "/").code == "not-found"
    assert issuer.request("GET", "/token-request").code == "method-not-allowed"
    assert issuer.request("GET", "/openapi.json").status == 404


def test_pages_of_named_origins_may_ask() -> None:
    path = "/token-request"
    asked = {
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "authorization,content-type",
    }
    with running_issuer(KEYS[:1], origins=["https://app.example"]) as issuer:
        allowed = issuer.request("OPTIONS", path, None, Origin="https://app.example", **asked)
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        refused = issuer.request("OPTIONS", path, None, Origin="https://b.example", **asked)
        assert "access-control-allow-origin" not in refused.headers


def test_accounts_and_requests_are_stored_as_hashes_and_outlast_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "issuer.db"
    body = pending().request().encode()
    with running_issuer(KEYS[:1], path) as issuer:
        account = issuer.account()
        first = ask(issuer, account, body)
    stored = path.read_bytes()
    for secret in (account.encode(), bytes.fromhex(account), body, body[3:], first.body):
        assert secret not in stored
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with running_issuer(KEYS[:1], path) as issuer:
        assert ask(issuer, account, body).body == first.body
        assert ask(issuer, account, pending().request().encode()).code == "no-tokens-left"


def test_nothing_of_a_request_is_logged(
    issuer: RunningIssuer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    account, item = issuer.account(), pending()
    ask(issuer, account, item.request().encode())
    ask(issuer, account, b"no request")
    written = caplog.text + "".join(capfd.readouterr())
    for secret in (account, item.request().blinded.hex(), repr(item.request().blinded)[2:40]):
        assert secret not in written


def test_key_files_are_private_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rides.pem"
    key, public = make_key_files(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SigningKeys.load([path]).public == [key]
    assert IssuerKey.from_pem(public.read_text(encoding="ascii")) == key
    before = path.read_bytes()
    with pytest.raises(InvalidFile, match="cannot be made"):
        make_key_files(path)
    assert path.read_bytes() == before


def test_files_that_are_no_keys_are_refused_without_their_content(tmp_path: Path) -> None:
    path = tmp_path / "rides.pem"
    with pytest.raises(InvalidFile, match="cannot be read"):
        SigningKeys.load([path])
    path.write_text("not a key")
    with pytest.raises(InvalidFile, match="must be a private key in PEM") as refusal:
        SigningKeys.load([path])
    assert "not a key" not in str(refusal.value)


def test_keys_that_requests_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="must differ in the last byte"):
        SigningKeys([KEYS[0].private, KEYS[0].private])


def test_a_file_of_something_else_is_no_register(tmp_path: Path) -> None:
    import sqlite3

    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE things (name TEXT)")
    connection.close()
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database" * 100)
    for path in (foreign, broken, tmp_path / "no folder" / "issuer.db"):
        with pytest.raises(InvalidFile, match="cannot be opened as a register"):
            Register(path)


def test_every_refusal_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "issuer.md").read_text(encoding="utf-8")
    for code, (status, _) in REFUSALS.items():
        assert f"| {status} | `{code}` |" in page
