"""`unpoison issuer`, and the options of other commands for campaigns by token."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import Command
from support.raw_http import NO_RATE_LIMITS, server_fixture
from support.running_collectors import InProcessCollector
from support.running_issuers import running_issuer
from support.token_holders import key_holder
from support.waiting import HANG_SECONDS
from unpoison import Plan
from unpoison.issuer.refusals import Refusal
from unpoison.issuer.register import Register
from unpoison.issuer.signing_keys import load_public_key
from unpoison.privacy_pass import IssuerKey

server = server_fixture(**NO_RATE_LIMITS)
HOLDER = key_holder("first")
CREATE = ("campaign", "create", "plan.json", "--name", "Rides", "--open", "--json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Plan.new("piecewise-integer", epsilon=1.0, low=0, high=100).save("plan.json")
    Path("issuer.pub.pem").write_text(HOLDER.key.pem, encoding="ascii")
    return tmp_path


@pytest.fixture
def operator(server: InProcessCollector, monkeypatch: pytest.MonkeyPatch) -> InProcessCollector:
    monkeypatch.setenv("UNPOISON_TOKEN", server.token)
    monkeypatch.setenv("UNPOISON_COLLECTOR", server.url)
    return server


def test_a_key_and_accounts_are_made(unpoison: Command) -> None:
    shown = unpoison.done("issuer", "key", "rides.pem").out
    key = IssuerKey.from_pem(Path("rides.pub.pem").read_text(encoding="ascii"))
    assert key.id.hex() in shown
    assert "PRIVATE" not in shown
    assert stat.S_IMODE(Path("rides.pem").stat().st_mode) == 0o600
    accounts = unpoison.done("issuer", "accounts", "-n", "3").out.split()
    assert len(set(accounts)) == 3
    assert not any(account.encode() in Path("issuer.db").read_bytes() for account in accounts)


def test_accounts_are_removed(unpoison: Command) -> None:
    accounts = unpoison.done("issuer", "accounts", "-n", "3").out.split()
    Path("left.txt").write_text("\n".join([*accounts[:2], "nobody"]), encoding="ascii")
    assert unpoison.done("issuer", "remove", "left.txt").out == "removed: 2\nunknown: 1\n"
    with Register(Path("issuer.db")) as register:
        assert [register.knows(account) for account in accounts] == [False, False, True]


def test_a_key_replaces_another(unpoison: Command) -> None:
    unpoison.done("issuer", "key", "rides.pem")
    unpoison.done("issuer", "key", "rides-2.pem", "--replaces", "rides.pub.pem")
    old, new = (load_public_key(Path(f"{name}.pub.pem")) for name in ("rides", "rides-2"))
    with Register(Path("issuer.db")) as register:
        [account] = register.add_accounts(1)
        register.count(account, old.id, b"first", most=1)
        with pytest.raises(Refusal, match="all its tokens"):
            register.count(account, new.id, b"second", most=1)


@pytest.fixture
def spawned() -> Iterator[subprocess.Popen[str]]:
    """An issuer in a process of its own, on a free port, with the key of rides.pem."""
    words = ["issuer", "serve", "rides.pem", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "unpoison", *words],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=HANG_SECONDS)


@pytest.fixture
def made_key(unpoison: Command) -> None:
    unpoison.done("issuer", "key", "rides.pem")


@pytest.mark.slow
def test_all_commands_together_let_an_account_report_once(
    made_key: None,
    spawned: subprocess.Popen[str],
    operator: InProcessCollector,
    unpoison: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert spawned.stdout is not None
    url = spawned.stdout.readline().removeprefix("Issuer: ").strip()
    name = url.removeprefix("http://")
    terms = ("--access", "token", "--issuer-key", "rides.pub.pem", "--issuer-name", name)
    origin = f"127.0.0.1:{operator.port}"
    created = unpoison.done(*CREATE, *terms, "--origin", origin).json
    assert created["access"] == "token"
    monkeypatch.setenv("UNPOISON_ACCOUNT", unpoison.done("issuer", "accounts").out.strip())
    report = ("report", operator.url, created["id"], "--low", "0", "--high", "100")
    value = ("--value", "42", "--issuer", url)
    assert "Sent" in unpoison.done(*report, *value, "--ledger", "a.db").out
    again = unpoison(*report, *value, "--ledger", "b.db", "--issuer-key", "rides.pub.pem")
    assert (again.code, again.out) == (2, "")
    assert "the issuer refused (403 no-tokens-left)" in again.err
    assert unpoison.done("campaign", "show", created["id"], "--json").json["submissions"] == 1
    spawned.send_signal(signal.SIGTERM)
    out, err = spawned.communicate(timeout=HANG_SECONDS)
    assert (spawned.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("key", "no/folder/rides.pem"), "cannot be made"),
        (("key", "plan.json"), "plan.json: cannot be made"),
        (("key",), "file"),
        (("key", "new.pem", "--replaces", "nowhere.pem"), "nowhere.pem: cannot be read"),
        (("key", "new.pem", "--replaces", "plan.json"), "must be a public key in PEM"),
        (("remove", "nowhere.txt"), "nowhere.txt"),
        (("remove", "plan.json", "--register", "plan.json"), "cannot be opened as a register"),
        (("accounts", "-n", "0"), "--count must be at least 1"),
        (("accounts", "--register", "plan.json"), "cannot be opened as a register"),
        (("serve",), "keys"),
        (("serve", "nowhere.pem"), "nowhere.pem: cannot be read"),
        (("serve", "plan.json"), "plan.json: key must be a private key"),
        (("serve", "issuer.pub.pem"), "key must be a private key"),
        (("serve", "issuer.pub.pem", "--tokens", "0"), "--tokens must be at least 1"),
        (("serv",), "serve"),
    ],
)
def test_bad_input_is_one_line(unpoison: Command, arguments: tuple[str, ...], words: str) -> None:
    assert words in unpoison.refused("issuer", *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--access", "token"), "token needs --issuer-key and --issuer-name"),
        (("--access", "token", "--issuer-key", "issuer.pub.pem"), "--issuer-name"),
        (("--access", "open", "--issuer-name", "a.example"), "--access must be token"),
        (("--origin", "a.example"), "--access must be token"),
        (
            ("--access", "token", "--issuer-key", "nowhere.pem", "--issuer-name", "a.example"),
            "nowhere.pem: cannot be read",
        ),
        (
            ("--access", "token", "--issuer-key", "plan.json", "--issuer-name", "a.example"),
            "key must be a public key in PEM",
        ),
        (
            ("--access", "token", "--issuer-key", "private.pem", "--issuer-name", "a.example"),
            "is a private key",
        ),
        (
            ("--access", "token", "--issuer-key", "issuer.pub.pem", "--issuer-name", "https://a"),
            "issuer name must be a host name",
        ),
    ],
)
def test_a_campaign_without_the_right_issuer_is_refused_in_one_line(
    operator: InProcessCollector, unpoison: Command, arguments: tuple[str, ...], words: str
) -> None:
    Path("private.pem").write_text("-----BEGIN PRIVATE KEY-----\n", encoding="ascii")
    assert words in unpoison.refused(*CREATE, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--issuer", "https://login.example"), "--issuer needs --account"),
        (("--issuer-key", "issuer.pub.pem"), "--issuer-key needs --issuer"),
        (("--issuer", "http://login.example", "--account", "a"), "issuer must be https://"),
        (("--issuer", "https://login.example", "--account", "a b"), "account must be letters"),
        (
            ("--issuer", "https://login.example", "--account", "a", "--issuer-key", "plan.json"),
            "key must be a public key in PEM",
        ),
    ],
)
def test_a_report_without_the_right_issuer_is_refused_in_one_line(
    unpoison: Command, arguments: tuple[str, ...], words: str
) -> None:
    report = ("report", "https://c.example", "k3v9", "--low", "0", "--high", "1", "--value", "1")
    complaint = unpoison.refused(*report, *arguments)
    assert words in complaint
    assert "a b" not in complaint


@pytest.mark.server
def test_an_account_is_not_repeated(
    operator: InProcessCollector, unpoison: Command, tmp_path: Path
) -> None:
    with running_issuer([HOLDER]) as issuer:
        terms = ("--issuer-key", "issuer.pub.pem", "--issuer-name", issuer.name)
        created = unpoison.done(*CREATE, "--access", "token", *terms).json
        report = ("report", operator.url, created["id"], "--low", "0", "--high", "100")
        account = ("--issuer", issuer.url, "--account", "no-such-account")
        outcome = unpoison(*report, "--value", "42", "--ledger", tmp_path / "a.db", *account)
    assert outcome.code == 2
    assert "the issuer refused (401 unauthorized)" in outcome.err
    assert "no-such-account" not in outcome.err + outcome.out
