"""Receivers of webhooks that hang: they hold up neither the end of a server nor other work."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from support.waiting import HANG_SECONDS, eventually
from unpoison.collector.campaigns.alarms import AlarmChange
from unpoison.collector.campaigns.outbox import announce, oldest_message
from unpoison.collector.clock import Clock
from unpoison.collector.service import webhook as module
from unpoison.collector.service.webhook import Webhook
from unpoison.collector.storage.database import Database
from unpoison.collector.storage.read_cache import ReadCache
from unpoison.collector.storage.temporary_database import temporary_database
from unpoison.collector.storage.writer import Writer

CHANGE = AlarmChange("k3v9x2m4q7w1", "Rides", "doubt", "started", at=0)


class Receiver:
    """A receiver that takes requests and never ends an answer; it may send a byte now and then."""

    def __init__(self, listener: socket.socket, bytes_every: float | None) -> None:
        self.listener, self.bytes_every = listener, bytes_every
        self.asked, self.released, self.left = (threading.Event() for _ in range(3))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/alarms"

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection, suppress(OSError):
            connection.recv(1)
            self.asked.set()
            while not self.released.wait(self.bytes_every):
                connection.sendall(b"H")
        self.left.set()


@contextmanager
def receiver(bytes_every: float | None = None) -> Iterator[Receiver]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = Receiver(listener, bytes_every)
        thread = threading.Thread(target=running.serve)
        thread.start()
        try:
            yield running
        finally:
            running.released.set()
            thread.join()


@pytest.fixture
def database() -> Iterator[Database]:
    """A database with one message to send."""
    with temporary_database() as opened:
        with opened.writing() as connection:
            announce(connection, [CHANGE], now=0)
        yield opened


def attempts(database: Database) -> int:
    with database.reading() as connection:
        message = oldest_message(connection)
    assert message is not None
    return message.attempts


async def deliver(database: Database, hung: Receiver, *, stop: bool) -> None:
    """Send what is due, perhaps only until the receiver has been asked, as a server that ends."""
    async with Writer(database) as writer:
        cache = ReadCache(database, Clock())
        sending = asyncio.create_task(Webhook(hung.url, "secret", writer, cache, Clock()).deliver())
        if stop:
            while not hung.asked.is_set():
                await asyncio.sleep(0.01)
            sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


def test_a_receiver_that_hangs_does_not_hold_up_the_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 10 * HANG_SECONDS)
    with receiver() as hung:
        # A thread joins those of its event loop when it closes that.
        server = threading.Thread(
            target=lambda: asyncio.run(deliver(database, hung, stop=True)), daemon=True
        )
        server.start()
        server.join(HANG_SECONDS)
        assert hung.asked.is_set()
        assert not server.is_alive(), "it waits for the receiver"
        assert not hung.released.is_set()
    assert attempts(database) == 0, "the message is sent after the next start"


def test_a_receiver_that_sends_a_byte_now_and_then_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.3)
    with receiver(bytes_every=0.02) as slow:
        asyncio.run(asyncio.wait_for(deliver(database, slow, stop=False), HANG_SECONDS))
        assert attempts(database) == 1
        eventually(slow.left.is_set)
        assert not slow.released.is_set(), "the collector hung up"
