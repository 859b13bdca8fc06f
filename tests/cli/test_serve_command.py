"""`unpoison serve`: settings, maintenance without a server, its start, logs and metrics."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Command
from support.running_collectors import in_process_collector, spawn_collector
from support.waiting import eventually
from unpoison.collector.server import listen
from unpoison.collector.service.signing_keys import KeyFile
from unpoison.collector.settings import PREFIX, Settings
from unpoison.collector.storage.database import Database, database_url
from unpoison.collector.storage.migration import migrate, newest
from unpoison.collector.storage.operator_tokens import stored_operators
from unpoison.errors import InvalidFile, InvalidParameter


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


def test_options_win_over_the_environment_and_that_over_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = Path("collector.toml")
    file.write_text('port = 1\nhost = "a"\nbatch_size = 7\nallowed_origins = ["https://x"]\n')
    monkeypatch.setenv(f"{PREFIX}HOST", "b")
    monkeypatch.setenv(f"{PREFIX}PORT", "2")
    settings = Settings.load(file, port=3)
    assert (settings.port, settings.host, settings.batch_size) == (3, "b", 7)
    assert settings.allowed_origins == ["https://x"]
    monkeypatch.setenv(f"{PREFIX}ALLOWED_ORIGINS", "https://y, https://z")
    assert Settings.load(file).allowed_origins == ["https://y", "https://z"]


def test_unknown_settings_are_refused_with_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("collector.toml").write_text("prot = 1\n")
    with pytest.raises(InvalidParameter, match="port"):
        Settings.load(Path("collector.toml"))
    monkeypatch.setenv(f"{PREFIX}BATCHSIZE", "1")
    with pytest.raises(InvalidParameter, match="batch_size"):
        Settings.load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", 70_000),
        ("batch_size", 0),
        ("log_level", "loud"),
        ("ticket_days", 1e-6),
        ("keep_submissions", float("inf")),
        ("operator_token", "short"),
        ("allowed_origins", ["https://example.org/"]),
        ("trusted_proxies", ["127.0.0.1", "proxy.internal"]),
        ("trusted_proxies", ["10.0.0.7/24"]),
        ("trusted_proxies", ["*"]),
    ],
)
def test_values_that_break_their_rule_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameter, match=name):
        Settings.load(**{name: value})


def test_files_that_are_no_settings_are_refused() -> None:
    Path("collector.toml").write_text("port = = 1")
    with pytest.raises(InvalidFile, match="TOML"):
        Settings.load(Path("collector.toml"))
    with pytest.raises(InvalidFile, match="cannot be read"):
        Settings.load(Path("nowhere.toml"))


def test_secrets_are_in_no_text(unpoison: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://ada:hunter2@127.0.0.1:9/reports"
    secret = "s3cret" * 4
    assert "hunter2" not in repr(Settings.load(database=url, operator_token=secret))
    assert "s3cret" not in repr(Settings.load(operator_token=secret))
    assert "hunter2" not in unpoison.refused("serve", "--check", "--database", url)
    monkeypatch.setenv(f"{PREFIX}OPERATOR_TOKEN", secret)
    assert "s3cret" not in unpoison.done("serve", "--check").out
    monkeypatch.setenv(f"{PREFIX}OPERATOR_TOKEN", "s3cret")
    assert "s3cret" not in unpoison.refused("serve", "--check")


def test_a_check_changes_nothing(unpoison: Command) -> None:
    checked = unpoison.done("serve", "--check", "--database", "reports.db").out
    assert f"none yet; would become {newest()}" in checked
    assert list(Path.cwd().iterdir()) == []
    with_schema("reports.db")
    assert (
        f"schema: {newest()}" in unpoison.done("serve", "--check", "--database", "reports.db").out
    )


def test_a_file_of_another_program_is_left_alone(unpoison: Command) -> None:
    with closing(sqlite3.connect("notes.db")) as notes:
        notes.execute("CREATE TABLE notes (text)")
    assert "another program" in unpoison.refused("serve", "--check", "--database", "notes.db")
    assert "another program" in unpoison.refused("serve", "--new-token", "--database", "notes.db")
    Path("text.db").write_text("no database at all, but long enough to look at")
    assert "as a database" in unpoison.refused("serve", "--database", "text.db")


@pytest.mark.server
def test_what_is_stored_is_for_its_owner_alone(tmp_path: Path) -> None:
    with in_process_collector(tmp_path) as server:
        server.create_campaign()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert set(modes.values()) == {0o600}, modes


def with_schema(name: str) -> Database:
    database = Database(database_url(name))
    migrate(database)
    return database


@pytest.mark.parametrize(
    "arguments",
    [
        ("--database", "mysql://host/name"),
        ("--database", "nowhere/reports.db"),
        ("--database", ":memory:"),
        ("--port", "70000"),
        ("--prot", "1"),
        ("--config", "nowhere.toml"),
        ("--keep-submissions", "-1"),
    ],
)
def test_bad_options_are_one_line(unpoison: Command, arguments: tuple[str, ...]) -> None:
    unpoison.refused("serve", "--check", *arguments)


def test_tokens_are_made_and_revoked(unpoison: Command) -> None:
    tokens = [unpoison.done("serve", "--new-token").out.strip() for _ in range(2)]
    database = Database(database_url("unpoison.db"))
    with database.reading() as connection:
        assert len(stored_operators(connection)) == 2
    database.close()
    stored = Path("unpoison.db").read_bytes()
    assert not any(token.encode() in stored for token in tokens)
    assert unpoison("serve", "--revoke-tokens").err.strip() == "Tokens revoked: 2"


def test_keys_are_rotated_and_forgotten(unpoison: Command) -> None:
    file = KeyFile(Path("unpoison.db.keys"))
    first = file.load_or_make()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    shown = unpoison.done("serve", "--rotate-key").out
    assert not any(key.secret in shown for key in file.load())
    assert file.load()[:1] == first
    assert len(file.load()) == 2
    unpoison.done("serve", "--forget-old-keys")
    assert len(file.load()) == 1
    assert file.load() != first
    file.path.write_text("{}")
    assert "not a file of keys" in unpoison.refused("serve", "--check")


def test_keys_of_another_server_are_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError("this file system has no links")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "tickets.keys"
    first = KeyFile(path).load_or_make()
    monkeypatch.setattr(Path, "exists", lambda *_: False)
    assert KeyFile(path).load_or_make() == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.slow
def test_the_first_start_prints_a_token_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unpoison", "serve", "--port", "0"]
    tokens = []
    for _ in range(2):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        eventually(lambda at=address: answers(f"{at}/healthz"))
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
        assert process.wait(30) == 0
        process.stdout.close()
        assert address.startswith("http://127.0.0.1:")
        tokens.append([line.split()[-1] for line in output.splitlines() if "this once" in line])
    assert [len(shown) for shown in tokens] == [1, 0]


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1"])
def test_a_host_that_is_not_of_this_machine_is_named(unpoison: Command, host: str) -> None:
    refusal = unpoison.refused("serve", "--host", host, "--port", "0")
    assert "--host must be an address of this machine" in refusal


@pytest.mark.parametrize(("platform", "reused"), [("linux", True), ("win32", False)])
def test_a_port_is_reused_where_that_does_not_share_it(
    monkeypatch: pytest.MonkeyPatch, platform: str, reused: bool
) -> None:
    with monkeypatch.context() as system:
        system.setattr(sys, "platform", platform)
        listener = listen("127.0.0.1", 0, "--port")
    with listener:
        assert bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)) == reused


def test_a_metrics_port_in_use_is_reported_before_a_token_is_made(
    unpoison: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setenv(f"{PREFIX}METRICS_PORT", str(other.getsockname()[1]))
        assert "metrics_port must be free" in unpoison.refused("serve", "--port", "0")


@pytest.mark.server
def test_a_port_in_use_is_reported(
    tmp_path_factory: pytest.TempPathFactory, unpoison: Command
) -> None:
    # In another folder than the command's, which must not change: a server empties its log.
    with in_process_collector(tmp_path_factory.mktemp("server")) as server:
        assert "must be free" in unpoison.refused("serve", "--port", server.port)


@pytest.mark.server
def test_health_metrics_and_description(tmp_path: Path) -> None:
    with in_process_collector(tmp_path) as server:
        assert server.request("GET", "/healthz").json == {"status": "ok"}
        assert server.request("GET", "/readyz").json == {"status": "ok", "keys": "same"}
        campaign = server.create_campaign()
        device = campaign.enrol_device()
        campaign.submit(device.body())
        campaign.submit(device.body([8] * device.reports))
        text = server.request("GET", "/metrics").body.decode()
        for line in (
            "unpoison_submissions_accepted_total 1.0",
            "unpoison_enrolments_total 1.0",
            'unpoison_rejected_total{cause="ticket-used"} 1.0',
            "unpoison_queue_waiting 0.0",
        ):
            assert line in text
        route = 'route="/v1/campaigns/{campaign}/reports",status="409"'
        assert f"unpoison_request_seconds_count{{{route}}} 1.0" in text
        description = server.request("GET", "/openapi.json").json
        assert "ErrorBody" in description["components"]["schemas"]


@pytest.mark.server
def test_logs_are_json_and_tell_no_secrets(tmp_path: Path) -> None:
    token = "t0ken" * 12
    environment = {"UNPOISON_COLLECTOR_LOG_LEVEL": "debug"}
    with open(tmp_path / "log", "w+") as log:
        standard_error = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            server = spawn_collector(tmp_path, token, **environment)
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
        campaign = server.create_campaign()
        device = campaign.enrol_device()
        campaign.submit(device.body([4001] * device.reports))
        campaign.submit(device.body([-4002] * device.reports))
        assert server.stop() == 0
        log.seek(0)
        lines = log.read().splitlines()
    events = [json.loads(line) for line in lines]
    assert {"request"} <= {event["event"] for event in events}
    assert any(event.get("status") == 422 for event in events)
    text = "\n".join(lines)
    secrets = [token, device.secret, device.invite, device.ticket["ticket"], "4001", "4002"]
    assert not any(str(secret) in text for secret in secrets)


@pytest.mark.server
def test_metrics_are_what_prometheus_expects(tmp_path: Path) -> None:
    with in_process_collector(tmp_path) as server:
        answer = server.request("GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
