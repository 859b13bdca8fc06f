"""What deploy/ holds, checked by the programs that it is for."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from support.programs import needed_program
from support.running_collectors import in_process_collector
from support.waiting import HANG_SECONDS, eventually
from unpoison.collector.campaigns.figures import CampaignFigures
from unpoison.collector.service.campaign_metrics import CampaignMetrics
from unpoison.collector.service.metrics import Metrics
from unpoison.collector.settings import PREFIX, Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "collector.json"
UNIT = (DEPLOY / "systemd" / "unpoison-collector.service").read_text(encoding="utf-8")
MOST_EXPOSED = 2.5
"""The exposure that systemd may find in the unit, of 10 for one without any protection."""


def check(*command: object, **environment: str) -> str:
    """Run a program that must succeed; its output."""
    words = [str(word) for word in command]
    finished = subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment or None
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


# Containers


def test_the_dockerfile_has_nothing_that_its_linter_minds() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    check(hadolint, "--failure-threshold", "info", DEPLOY / "Dockerfile")


def test_the_image_is_built_from_files_that_exist_and_runs_without_root() -> None:
    sources = re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert sources
    assert all((ROOT / name).exists() for line in sources for name in line.split())
    assert re.search(r"^USER [1-9]\d*$", DOCKERFILE, re.MULTILINE)
    assert "HEALTHCHECK" in DOCKERFILE


def settings_named(text: str) -> set[str]:
    return {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)", text)}


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml"])
def test_settings_of_containers_are_settings_of_the_collector(name: str) -> None:
    named = settings_named((DEPLOY / name).read_text(encoding="utf-8"))
    assert named
    assert named <= set(Settings.model_fields)


def test_the_collector_believes_the_proxy_and_nobody_else() -> None:
    proxy = COMPOSE["services"]["proxy"]["networks"]["outside"]["ipv4_address"]
    environment = COMPOSE["services"]["collector"]["environment"]
    assert environment[f"{PREFIX}TRUSTED_PROXIES"] == proxy


def test_only_the_proxy_can_be_reached_from_outside() -> None:
    services = COMPOSE["services"]
    assert [name for name in services if "ports" in services[name]] == ["proxy"]
    assert services["database"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"] is True


def test_every_variable_of_the_compose_file_is_in_the_sample() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    sample = (DEPLOY / ".env.example").read_text(encoding="utf-8")
    variables = set(re.findall(r"\$\{(\w+)", text))
    assert variables == set(re.findall(r"^(\w+)=", sample, re.MULTILINE))


def test_caddy_takes_its_file(tmp_path: Path) -> None:
    caddy = needed_program("caddy")
    check(
        *(caddy, "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"),
        COLLECTOR_DOMAIN="collector.example.org",
        HOME=str(tmp_path),
    )


# The service of a machine


def test_systemd_takes_the_unit_and_finds_it_well_protected(tmp_path: Path) -> None:
    analyze = needed_program("systemd-analyze")
    unit = tmp_path / "unpoison-collector.service"
    unit.write_text(UNIT.replace("/opt/unpoison/bin/unpoison", sys.executable), encoding="utf-8")
    check(analyze, "verify", "--man=no", unit)
    check(analyze, "security", "--offline=yes", f"--threshold={MOST_EXPOSED * 10:.0f}", unit)


@pytest.mark.slow
def test_the_command_of_the_unit_takes_the_sample_of_settings(tmp_path: Path) -> None:
    command = re.search(r"^ExecStart=\S+ (.*)$", UNIT, re.MULTILINE)
    assert command is not None
    sample = (DEPLOY / "systemd" / "collector.toml").read_text(encoding="utf-8")
    config = tmp_path / "collector.toml"
    config.write_text(sample.replace("/var/lib/unpoison", str(tmp_path)), encoding="utf-8")
    words = command.group(1).replace("/etc/unpoison/collector.toml", str(config)).split()
    assert "schema: none yet" in check(sys.executable, "-m", "unpoison", *words, "--check")


@contextmanager
def running_nginx(folder: Path, port: int) -> Iterator[int]:
    """Our configuration in a real nginx on this machine; yields its port."""
    nginx, openssl = needed_program("nginx"), needed_program("openssl")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    request = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    names = ("-subj", "/CN=collector.example.org", "-keyout", key, "-out", certificate)
    check(openssl, *request, *names)
    with socket.create_server(("127.0.0.1", 0)) as free:
        outside = int(free.getsockname()[1])
    site = (DEPLOY / "nginx" / "collector.conf").read_text(encoding="utf-8")
    for ours, theirs in {
        "listen 443": f"listen 127.0.0.1:{outside}",
        "server 127.0.0.1:8000": f"server 127.0.0.1:{port}",
        "/etc/ssl/collector/fullchain.pem": str(certificate),
        "/etc/ssl/collector/privkey.pem": str(key),
    }.items():
        assert ours in site
        site = site.replace(ours, theirs)
    (folder / "site.conf").write_text(site, encoding="utf-8")
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; user root;\n"
        "events {}\n"
        f"http {{ client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"include {folder}/site.conf; }}\n",
        encoding="utf-8",
    )
    check(nginx, "-t", "-c", config)
    process = subprocess.Popen([nginx, "-c", str(config)], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(outside))
        yield outside
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def through_tls(port: int, path: str, source: str = "127.0.0.1", **headers: str) -> int:
    """The status of a GET request through nginx, from one of this machine's addresses."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(
        "127.0.0.1", port, context=context, timeout=HANG_SECONDS, source_address=(source, 0)
    )
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.server
def test_nginx_forwards_addresses_that_clients_cannot_choose(tmp_path: Path) -> None:
    settings = {"trusted_proxies": ["127.0.0.1"], "guesses_per_minute": 3}
    with in_process_collector(tmp_path, **settings) as server:
        server.clock.stopped_at = 0.0
        with running_nginx(tmp_path, server.port) as port:
            assert through_tls(port, "/healthz") == 200
            assert through_tls(port, "/metrics") == 404
            wrong = {"Authorization": "Bearer wrong"}
            guesses = [
                through_tls(port, "/v1/campaigns", **wrong, **{"X-Forwarded-For": f"192.0.2.{n}"})
                for n in range(4)
            ]
            assert guesses == [401, 401, 401, 429]
            assert through_tls(port, "/v1/campaigns", source="127.0.0.2", **wrong) == 401


# Monitoring


def expressions() -> list[str]:
    """The expressions of all alerts and panels."""
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    of_alerts = [rule["expr"] for group in rules for rule in group["rules"]]
    return of_alerts + [target["expr"] for panel in panels for target in panel["targets"]]


def exposed_names() -> set[str]:
    """The names of all series that the collector exposes."""
    metrics = Metrics()
    metrics.rejected.labels("unavailable").inc()
    metrics.requests.labels("/healthz", "200").observe(0.1)
    figures = CampaignFigures("k3v9x2m4q7w1", "Rides", "open", 9, 1.0, 0.1, 0.2, True, 0)
    text = metrics.text() + CampaignMetrics([figures], now=9).text()
    return set(re.findall(r"^(unpoison_\w+)", text.decode(), re.MULTILINE))


@pytest.mark.parametrize("expression", expressions())
def test_alerts_and_panels_ask_for_metrics_that_exist(expression: str) -> None:
    assert set(re.findall(r"\bunpoison_\w+", expression)) <= exposed_names()


def test_prometheus_takes_the_alerts() -> None:
    check(needed_program("promtool"), "check", "rules", ALERTS)


def test_panels_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    squares = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(squares) == len(set(squares))
    assert max(x for x, _ in squares) < 24
