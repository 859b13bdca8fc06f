"""The read cache shares a reading among concurrent callers for a second, and keeps no failure."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from support.waiting import HANG_SECONDS
from unpoison.collector.clock import Clock
from unpoison.collector.faults import Fault
from unpoison.collector.storage.read_cache import LIFETIME_SECONDS, MOST_ENTRIES, ReadCache
from unpoison.collector.storage.temporary_database import temporary_database


class SetClock(Clock):
    """A clock that a test sets."""

    seconds = 0.0

    def steady(self) -> float:
        return self.seconds


class CountedRead:
    """A read that counts its calls, and may be held up or fail."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_return = threading.Event()
        self.may_return.set()
        self.fails = False

    def __call__(self, connection: Connection) -> int:
        self.calls += 1
        self.may_return.wait(HANG_SECONDS)
        if self.fails:
            raise Fault("unavailable")
        return self.calls


@pytest.fixture
def cache() -> Iterator[ReadCache]:
    with temporary_database() as database:
        yield ReadCache(database, SetClock())


@pytest.fixture
def read() -> CountedRead:
    return CountedRead()


def set_clock(cache: ReadCache, seconds: float) -> None:
    assert isinstance(cache.clock, SetClock)
    cache.clock.seconds = seconds


def test_concurrent_callers_share_one_reading(cache: ReadCache, read: CountedRead) -> None:
    read.may_return.clear()

    async def ask_together() -> list[int]:
        callers = [asyncio.create_task(cache.get("name", read)) for _ in range(20)]
        await asyncio.sleep(0.1)
        read.may_return.set()
        return await asyncio.gather(*callers)

    assert asyncio.run(ask_together()) == [1] * 20
    assert read.calls == 1


def test_a_caller_who_leaves_does_not_cancel_the_others(
    cache: ReadCache, read: CountedRead
) -> None:
    read.may_return.clear()

    async def first_leaves() -> int:
        leaving, staying = (asyncio.create_task(cache.get("name", read)) for _ in range(2))
        await asyncio.sleep(0.1)
        leaving.cancel()
        read.may_return.set()
        return await staying

    assert asyncio.run(first_leaves()) == 1


def test_a_result_is_served_for_a_second(cache: ReadCache, read: CountedRead) -> None:
    async def ask_over_time() -> list[int]:
        results = []
        for seconds in (0.0, 0.99 * LIFETIME_SECONDS, LIFETIME_SECONDS):
            set_clock(cache, seconds)
            results.append(await cache.get("name", read))
        return results

    assert asyncio.run(ask_over_time()) == [1, 1, 2]


def test_a_failure_is_not_served_again(cache: ReadCache, read: CountedRead) -> None:
    async def fail_then_ask() -> int:
        read.fails = True
        with pytest.raises(Fault):
            await cache.get("name", read)
        read.fails = False
        return await cache.get("name", read)

    assert asyncio.run(fail_then_ask()) == 2


def test_clearing_makes_the_next_caller_read_again(cache: ReadCache, read: CountedRead) -> None:
    async def clear_between() -> list[int]:
        first = await cache.get("name", read)
        cache.clear()
        return [first, await cache.get("name", read)]

    assert asyncio.run(clear_between()) == [1, 2]


def test_names_are_read_apart_and_their_number_is_bounded(
    cache: ReadCache, read: CountedRead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unpoison.collector.storage.read_cache.MOST_ENTRIES", 3)
    assert MOST_ENTRIES > 3

    async def ask_for_many_names() -> list[int]:
        return [await cache.get(f"name {number}", read) for number in range(5)]

    assert asyncio.run(ask_for_many_names()) == [1, 2, 3, 4, 5]
    assert len(cache.entries) <= 3
