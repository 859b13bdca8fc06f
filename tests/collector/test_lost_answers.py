"""A device that dies between sending and hearing back is counted once, with the same bytes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command_line import Command
from support.running_collectors import RunningCampaign, RunningCollector, in_process_collector
from support.waiting import eventually

SECONDS = 60.0


class Line:
    """The line between a device and its collector, which can be cut at a chosen request.

    `cut` names the end of a path. The request is taken from the device; it is handed on if
    `delivers`, and its answer is swallowed. From then on the line is silent, until it is mended.
    """

    def __init__(self, face: RunningCollector, listener: socket.socket) -> None:
        self.server, self.listener = face, listener
        self.cut, self.delivers = "", True
        self.requests: list[bytes] = []
        self.silent = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        """Take one connection after the other."""
        while True:
            try:
                device, _ = self.listener.accept()
            except OSError:
                return
            with device:
                self._carry(device)

    def _carry(self, device: socket.socket) -> None:
        """One request after the other, until the device goes away."""
        while request := _request(device):
            self.requests.append(request)
            lost = self.cut and self.path(request).endswith(self.cut)
            answer = b"" if lost and not self.delivers else self._answer(request)
            if lost:
                self.silent.set()
                while device.recv(2**16):
                    pass
                return
            device.sendall(answer)

    def _answer(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.server.port), SECONDS) as collector:
            collector.sendall(request)
            return _message(collector)

    @staticmethod
    def path(request: bytes) -> str:
        return request.split()[1].decode()

    def reports(self) -> list[bytes]:
        """The submissions that have come from the device, as they came."""
        return [message for message in self.requests if self.path(message).endswith("/reports")]


def _request(device: socket.socket) -> bytes:
    try:
        return _message(device)
    except OSError:
        return b""


def _message(source: socket.socket) -> bytes:
    """A head and the body that it promises; nothing if there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = source.recv(2**16)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    promised = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    while len(body) < int(promised or 0):
        body += source.recv(2**16)
    return head + b"\r\n\r\n" + body


@contextmanager
def line_to(face: RunningCollector) -> Iterator[Line]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = Line(face, listener)
        thread = threading.Thread(target=line.serve)
        thread.start()
        try:
            yield line
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)


def report_command(line: Line, campaign: RunningCampaign, ledger: Path) -> list[str]:
    """The command by which a device with a fresh invite reports a value."""
    words = [line.url, campaign.id, "--low", "0", "--high", "100", "--value", "42"]
    return ["report", *words, "--invite", campaign.invite(), "--ledger", str(ledger)]


@pytest.mark.server
@pytest.mark.parametrize(
    ("cut", "delivers"),
    [("/reports", True), ("/reports", False), ("/tickets", True)],
    ids=["answer to the report", "report", "answer with the ticket"],
)
def test_a_device_that_is_killed_before_it_hears_back_is_counted_once(
    unpoison: Command, cut: str, delivers: bool, tmp_path: Path
) -> None:
    with in_process_collector(tmp_path) as server, line_to(server) as line:
        campaign = server.create_campaign()
        command = report_command(line, campaign, tmp_path / "ledger.db")
        line.cut, line.delivers = cut, delivers
        with subprocess.Popen([sys.executable, "-m", "unpoison", *command]) as first:
            assert line.silent.wait(SECONDS)
            first.send_signal(signal.SIGKILL)
        arrived = int(cut == "/reports" and delivers)
        eventually(lambda: campaign.status()["submissions"] == arrived)

        line.cut = ""
        assert unpoison.done(*command).out.startswith("Sent ")
        assert unpoison.done(*command).out.startswith("Nothing sent")
        assert len(line.reports()) == (2 if cut == "/reports" else 1)
        assert len(set(line.reports())) == 1, "the same bytes each time"
        eventually(lambda: campaign.status()["submissions"] == 1)
        assert campaign.status()["enrolled"] == 1
        assert campaign.status()["invites"]["used"] == 1
