"""Memory of a server that strangers send large batches to: bounded, and given back."""

from __future__ import annotations

import asyncio
import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.processes import HAS_PROC, resident_bytes
from support.running_collectors import spawn_collector
from support.waiting import eventually
from unpoison.collector.faults import Fault
from unpoison.collector.http import body_memory
from unpoison.collector.http.body_memory import BodyMemory

MEGABYTE = 2**20
GROWTH = 150 * MEGABYTE
"""More than a server keeps (some 40 MB), and less than a third of what it kept without limits."""
SENDERS, BATCHES = 6, 3


def bogus_batch() -> bytes:
    """Five megabytes of submissions with a ticket that nobody has issued."""
    submission = {"ticket": "t", "device": secrets.token_hex(32), "values": [1000] * 30_000}
    return json.dumps({"submissions": [submission] * 28}).encode()


@pytest.mark.server
@pytest.mark.skipif(not HAS_PROC, reason="needs /proc to tell the size of a process")
def test_bogus_batches_do_not_make_a_server_grow_for_good(tmp_path: Path) -> None:
    server, body = spawn_collector(tmp_path, "t" * 32), bogus_batch()
    try:
        path = f"{server.create_campaign().path}/reports/batch"
        before = resident_bytes(server.process.pid)

        def send(_: int) -> set[str]:
            replies = [server.post(path, body) for _ in range(BATCHES)]
            return {
                result["error"]["code"] for reply in replies for result in reply.json["results"]
            }

        with ThreadPoolExecutor(SENDERS) as senders:
            assert set().union(*senders.map(send, range(SENDERS))) == {"invalid-ticket"}
        eventually(lambda: resident_bytes(server.process.pid) < before + GROWTH, seconds=20)
    finally:
        assert server.stop() == 0


def test_memory_is_given_back_once_after_large_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(body_memory, "give_back_memory", lambda: calls.append("given back"))
    monkeypatch.setattr(body_memory, "GIVE_BACK_SECONDS", 0.01)

    async def serve(sizes: list[int]) -> int:
        memory = BodyMemory()
        for size in sizes:
            memory.take(size)
            memory.release(size)
        while memory.giving_back is not None:
            await asyncio.sleep(0.01)
        return memory.in_flight

    assert asyncio.run(serve([100, body_memory.LARGE_BYTES])) == 0
    assert calls == []
    assert asyncio.run(serve([2 * body_memory.LARGE_BYTES] * 3)) == 0
    assert calls == ["given back"]


def test_a_kept_fault_keeps_no_frames() -> None:
    def refuse() -> None:
        try:
            raise ValueError("what the client sent")
        except ValueError:
            raise Fault("invalid-ticket") from None

    with pytest.raises(Fault) as caught:
        refuse()
    kept = caught.value.without_trace()
    assert (kept.code, kept.__traceback__, kept.__context__) == ("invalid-ticket", None, None)
