"""The transport: addresses, retries, hostile answers, certificates, and bounds on time."""

from __future__ import annotations

import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.fake_collector import (
    ANSWER_LOST,
    CAMPAIGN,
    NOT_RECEIVED,
    FakeCollector,
    Fault,
    raw,
    status,
)
from unpoison import CollectorNotTrusted, CollectorUnreachable, InvalidParameter, Plan
from unpoison.client import Address, Retries, Transport
from unpoison.client.responses import MAX_RESPONSE_BYTES

PLAN = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=86400)
PATH = f"/v1/campaigns/{CAMPAIGN}"


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector(PLAN) as fake:
        yield fake


class FakeClock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def time(self) -> float:
        return self.now


@contextmanager
def transport(
    url: str, chance: float = 1.0, **keys: float
) -> Iterator[tuple[Transport, FakeClock]]:
    """A transport with the longest random waits, on a clock that only its sleeping moves."""
    clock = FakeClock()
    retries = Retries(random=lambda: chance, **keys)  # type: ignore[arg-type]
    with Transport(url, retries=retries, sleep=clock.sleep, clock=clock.time) as client:
        yield client, clock


@contextmanager
def raw_server(respond: Callable[[socket.socket], None]) -> Iterator[str]:
    """A TCP server that hands each connection to `respond` once a request has arrived."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    peer, _ = server.accept()
                except TimeoutError:
                    continue
                with peer:
                    peer.settimeout(5)
                    try:
                        peer.recv(2**16)
                        respond(peer)
                    except OSError:
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


# Addresses


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://Collector.Example", "https://collector.example"),
        ("https://collector.example:443/", "https://collector.example"),
        ("https://collector.example:8443/dap/v2/", "https://collector.example:8443/dap/v2"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://[0:0::1]", "http://[::1]"),
        ("https://sammlung.müller.example", "https://sammlung.xn--mller-kva.example"),
    ],
)
def test_an_address_is_written_in_one_way(url: str, written: str) -> None:
    assert str(Address.parse(url)) == written
    assert Address.parse(written) == Address.parse(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "collector.example",
        "ftp://collector.example",
        "https://",
        "https:///v1",
        "https://collector.example?x=1",
        "https://collector.example#top",
        "https://collector.example:port",
        "https://collector.example:70000",
        "https://collector.example:0",
        "https://[::1",
        "https://a b.example",
        "https://a%20b.example",
        "https://collector.example/..",
        "https://collector.example/a b",
        "https://collector.example/\r\nHost: else",
        "https://-x.example",
        "https://" + 70 * "x" + "é.example",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidParameter, match="collector must be an address"):
        Address.parse(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidParameter, match="one with a user name") as caught:
        Address.parse("https://ada:secret@collector.example")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://collector.example", "http://10.0.0.1:80", "http://0.0.0.0", "http://[fe80::1]"]
)
def test_without_encryption_only_this_machine_is_spoken_to(url: str) -> None:
    with pytest.raises(InvalidParameter, match="must be https:// unless insecure"):
        Transport(url)
    assert Transport(url, insecure=True).address.loopback is False


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]"])
def test_this_machine_needs_no_encryption(host: str) -> None:
    assert Transport(f"http://{host}:8000").address.loopback


# Retries


def test_a_connection_is_kept(collector: FakeCollector) -> None:
    with transport(collector.url) as (client, _):
        for _ in range(5):
            assert client.exchange("GET", PATH).status == 200
    assert len({request.connection for request in collector.requests}) == 1


def test_a_path_before_the_resources_is_kept(collector: FakeCollector) -> None:
    with transport(f"{collector.url}/dap/") as (client, _):
        client.exchange("GET", PATH)
    assert collector.requests[0].path == f"/dap{PATH}"


def test_a_connection_that_went_stale_is_replaced_without_a_wait(collector: FakeCollector) -> None:
    with transport(collector.url) as (client, clock):
        client.exchange("GET", PATH)
        collector.faults["campaign"].append(NOT_RECEIVED)
        assert client.exchange("GET", PATH).status == 200
        assert clock.waits == []


@pytest.mark.parametrize("closing", ["close", "Close"])
def test_a_connection_that_the_collector_closes_is_not_reused(
    closing: str, collector: FakeCollector
) -> None:
    collector.faults["campaign"].append(status(404, {}, Connection=closing))
    with transport(collector.url) as (client, clock):
        assert client.exchange("GET", PATH).status == 404
        assert client.exchange("GET", PATH).status == 200
        assert clock.waits == []
    assert len({request.connection for request in collector.requests}) == 2


def test_waits_double_up_to_a_bound(collector: FakeCollector) -> None:
    collector.faults["campaign"].extend(5 * [ANSWER_LOST])
    with transport(collector.url, first=1.0, longest=5.0) as (client, clock):
        assert client.exchange("GET", PATH).status == 200
    assert clock.waits == [1, 2, 4, 5, 5]


def test_waits_are_shortened_at_random_by_the_systems_generator() -> None:
    waits = [Retries(first=1.0).wait(0) for _ in range(200)]
    assert 0 <= min(waits) < 0.1
    assert 0.9 < max(waits) <= 1
    assert len(set(waits)) == 200


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_answers_that_may_change_are_asked_for_again(code: int, collector: FakeCollector) -> None:
    collector.faults["campaign"].extend([status(code, {}), status(code, b"<html>")])
    with transport(collector.url) as (client, clock):
        assert client.exchange("GET", PATH).status == 200
    assert len(clock.waits) == 2


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 409, 413, 415, 422, 501, 302])
def test_other_answers_are_final(code: int, collector: FakeCollector) -> None:
    collector.faults["campaign"].append(status(code, {}))
    with transport(collector.url) as (client, clock):
        assert client.exchange("GET", PATH).status == code
    assert clock.waits == []


def test_attempts_are_bounded(collector: FakeCollector) -> None:
    collector.faults["campaign"].extend(9 * [status(503, {})])
    with (
        transport(collector.url, attempts=4) as (client, clock),
        pytest.raises(CollectorUnreachable, match=r"in 4 attempts \(status 503\)"),
    ):
        client.exchange("GET", PATH)
    assert len(collector.requests) == 4
    assert len(clock.waits) == 3


def test_the_whole_time_is_bounded(collector: FakeCollector) -> None:
    collector.faults["campaign"].extend(99 * [ANSWER_LOST])
    with (
        transport(collector.url, attempts=99, patience=10.0, first=1.0, longest=4.0) as (
            client,
            clock,
        ),
        pytest.raises(CollectorUnreachable),
    ):
        client.exchange("GET", PATH)
    assert clock.waits == [1, 2, 4]


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_honoured(code: int, collector: FakeCollector) -> None:
    collector.faults["campaign"].append(status(code, {}, Retry_After="7"))
    with transport(collector.url, first=0.5) as (client, clock):
        assert client.exchange("GET", PATH).status == 200
    assert clock.waits == [7.5]


@pytest.mark.parametrize(
    "retry_after", ["61", "999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"]
)
def test_a_collector_cannot_make_a_device_wait_beyond_its_patience(
    retry_after: str, collector: FakeCollector
) -> None:
    """The request fails at once: a shorter wait would ignore what the collector asks for."""
    collector.faults["campaign"].append(status(503, {}, Retry_After=retry_after))
    with (
        transport(collector.url, patience=60.0) as (client, clock),
        pytest.raises(CollectorUnreachable, match=r"in 1 attempt \(status 503, come back in"),
    ):
        client.exchange("GET", PATH)
    assert clock.waits == []


@pytest.mark.parametrize(
    "retry_after", ["", "soon", "-5", "1e3", "½", "Mon, 99 Foo", "Mon, 01 Jan 2001 00:00:00 GMT"]
)
def test_a_retry_after_without_sense_or_in_the_past_asks_for_nothing(
    retry_after: str, collector: FakeCollector
) -> None:
    head, others = raw(503, {}).split(b"\r\n", 1)
    header = b"Retry-After: " + retry_after.encode("latin-1")
    collector.faults["campaign"].append(
        Fault(b"\r\n".join([head, header, others]), processed=False)
    )
    with transport(collector.url, first=0.5) as (client, clock):
        assert client.exchange("GET", PATH).status == 200
    assert clock.waits == [0.5]


def test_a_refused_connection_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        transport(f"http://127.0.0.1:{port}", attempts=2) as (client, _),
        pytest.raises(CollectorUnreachable, match=r"in 2 attempts \(Connection refused\)"),
    ):
        client.exchange("GET", PATH)


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"attempts": 0}, "attempts"),
        ({"attempts": 10**6}, "attempts"),
        ({"patience": 0}, "patience"),
        ({"first": -1}, "first"),
        ({"longest": float("nan")}, "longest"),
    ],
)
def test_retries_must_make_sense(keys: dict[str, float], name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        Retries(**keys)  # type: ignore[arg-type]


# Hostile answers


@pytest.mark.parametrize(
    "response",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 " + 70_000 * b"x" + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n"
        + b"".join(b"X-%d: y\r\n" % number for number in range(200))
        + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/9.9 \r\n\r\n",
    ],
    ids=["ssh", "status", "long line", "many headers", "negative chunk", "version"],
)
def test_what_is_not_http_is_not_trusted(response: bytes) -> None:
    with (
        raw_server(lambda peer: peer.sendall(response)) as url,
        transport(url) as (client, _),
        pytest.raises(CollectorNotTrusted, match="not HTTP"),
    ):
        client.exchange("GET", PATH)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 503 Later\r\n\r\n",
    ],
    ids=["until closed", "length", "chunk", "negative chunk", "retried"],
)
def test_an_endless_body_is_not_read_to_its_end(head: bytes) -> None:
    sent = itertools.count()

    def flood(peer: socket.socket) -> None:
        peer.sendall(head)
        for _ in range(4 * MAX_RESPONSE_BYTES // 2**16):
            peer.sendall(2**16 * b" ")
            next(sent)

    with (
        raw_server(flood) as url,
        transport(url) as (client, _),
        pytest.raises(CollectorNotTrusted, match=r"longer than|more than"),
    ):
        client.exchange("GET", PATH)
    assert next(sent) < 4 * MAX_RESPONSE_BYTES // 2**16


@pytest.mark.slow
def test_endless_continuations_end() -> None:
    def go_on(peer: socket.socket) -> None:
        for _ in range(4 * MAX_RESPONSE_BYTES // 2500):
            peer.sendall(100 * b"HTTP/1.1 100 Continue\r\n\r\n")

    with (
        raw_server(go_on) as url,
        transport(url) as (client, _),
        pytest.raises(CollectorNotTrusted, match="more than"),
    ):
        client.exchange("GET", PATH)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", raw(200, 100 * b" ")[:-100]])
def test_an_answer_that_drips_is_given_up_in_time(head: bytes) -> None:
    """The device leaves while the answer still goes on."""
    given_up = threading.Event()

    def drip(peer: socket.socket) -> None:
        peer.sendall(head)
        for _ in range(3000):
            peer.sendall(b" ")
            if given_up.wait(0.02):
                break

    retries = Retries(attempts=9, patience=0.3, first=0.01)
    with (
        raw_server(drip) as url,
        Transport(url, retries=retries) as client,
    ):
        with pytest.raises(CollectorUnreachable, match="timed out"):
            client.exchange("GET", PATH)
        given_up.set()


@pytest.mark.parametrize(
    "response",
    [
        raw(200, {"status": "accepted"})[:-3],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["length", "chunk", "no chunk"],
)
def test_an_answer_that_is_cut_off_is_asked_for_again(response: bytes) -> None:
    answers = iter([response, raw(200, b"{}")])
    with (
        raw_server(lambda peer: peer.sendall(next(answers))) as url,
        transport(url) as (client, clock),
    ):
        assert client.exchange("GET", PATH).body == b"{}"
        assert len(clock.waits) == 1


def test_an_interruption_leaves_no_half_used_connection(
    collector: FakeCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transport(collector.url) as (client, _):
        with monkeypatch.context() as patch:

            def interrupt(_: object) -> None:
                raise KeyboardInterrupt

            patch.setattr("unpoison.client.transport._read_body", interrupt)
            with pytest.raises(KeyboardInterrupt):
                client.exchange("GET", PATH)
        assert json.loads(client.exchange("GET", PATH).body)["id"] == CAMPAIGN


# Encryption

CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNXeGt3fjbB7Ebbjm
ngT7WiIdtwo97Jtdk1uJt69sMwWhRANCAAQUNZs4uO2YmzsXNHrODvZlcUQVyD/X
zsuYDHXkE9HUI+zeixiQdxdrkOMFXloYDDcSWfaXhvTqimOIr5zK8Rle
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBdjCCARygAwIBAgIBAjAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA51bnBvaXNv
biB0ZXN0czAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowGTEXMBUG
A1UEAwwOdW5wb2lzb24gdGVzdHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQU
NZs4uO2YmzsXNHrODvZlcUQVyD/XzsuYDHXkE9HUI+zeixiQdxdrkOMFXloYDDcS
WfaXhvTqimOIr5zK8Rleo1MwUTAPBgNVHREECDAGhwR/AAABMA8GA1UdEwEB/wQF
MAMBAf8wDgYDVR0PAQH/BAQDAgKEMB0GA1UdDgQWBBRBo1qZuXsbgHYUBXIta1m3
oTySJjAKBggqhkjOPQQDAgNIADBFAiASmXKy9f8EwzsuiHiObVBAB+RNyYkPUfrX
6lsussvbiwIhAP+5gAF92J3NzgYGgSye3ZCvtNgnXynLFG8o4/KSRFY7
-----END CERTIFICATE-----
"""
"""Key and self-signed certificate for 127.0.0.1, used by these tests alone."""


@contextmanager
def encrypted(folder: Path) -> Iterator[tuple[FakeCollector, Path]]:
    certificate = folder / "certificate.pem"
    certificate.write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with FakeCollector(PLAN) as fake:
        plain = fake.server.socket
        fake.server.socket = context.wrap_socket(plain, server_side=True)
        fake.url = fake.url.replace("http://", "https://")
        yield fake, certificate


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    with (
        encrypted(tmp_path) as (fake, _),
        transport(fake.url) as (client, clock),
        pytest.raises(CollectorNotTrusted, match="the certificate is not valid: self"),
    ):
        client.exchange("GET", PATH)
    assert fake.requests == []
    assert clock.waits == []


def test_a_certificate_for_another_name_is_not_trusted(tmp_path: Path) -> None:
    with encrypted(tmp_path) as (fake, certificate):
        context = ssl.create_default_context(cafile=certificate)
        url = fake.url.replace("127.0.0.1", "localhost")
        with (
            Transport(url, context=context) as client,
            pytest.raises(CollectorNotTrusted, match="certificate is not valid: Hostname mismatch"),
        ):
            client.exchange("GET", PATH)


def test_a_certificate_authority_can_be_given(tmp_path: Path) -> None:
    with encrypted(tmp_path) as (fake, certificate):
        context = ssl.create_default_context(cafile=certificate)
        with Transport(fake.url, context=context) as client:
            assert [client.exchange("GET", PATH).status for _ in range(2)] == [200, 200]
    assert len({request.connection for request in fake.requests}) == 1
