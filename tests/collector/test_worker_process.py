"""The worker process returns what functions return and raise, and can be ended while it is busy."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.waiting import HANG_SECONDS, eventually
from unpoison import InvalidParameter, Plan
from unpoison.collector.service import worker_process
from unpoison.collector.service.worker_process import WorkerEnded, WorkerProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _started_as_in_a_server() -> Iterator[None]:
    """Spawn workers as a server does: other tests fork them, which is quicker."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(worker_process, "CONTEXT", multiprocessing.get_context("spawn"))
        yield


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    worker.end()


@pytest.fixture
def other_worker() -> Iterator[WorkerProcess]:
    """A worker that a test may end."""
    worker = WorkerProcess()
    yield worker
    worker.end()


def test_functions_run_one_after_another_in_another_process(worker: WorkerProcess) -> None:
    pids = {worker.run(os.getpid) for _ in range(3)}
    assert pids == {worker.process.pid}
    assert os.getpid() not in pids


def test_an_exception_is_raised_here_and_the_worker_goes_on(worker: WorkerProcess) -> None:
    with pytest.raises(InvalidParameter, match="must be JSON"):
        worker.run(Plan.from_json, "{")
    assert worker.run(divmod, 7, 2) == (3, 1)


def test_a_result_that_cannot_be_sent_is_an_exception(worker: WorkerProcess) -> None:
    with pytest.raises(TypeError):
        worker.run(threading.Lock)
    assert worker.run(divmod, 7, 2) == (3, 1)


@contextmanager
def read_by_another(pipe: Path) -> Iterator[None]:
    """Wait until another process reads from a named pipe; nothing is written to it."""
    ends: list[int] = []

    def is_read() -> bool:
        with suppress(OSError):  # Nobody has opened it to read.
            ends.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return bool(ends)

    eventually(is_read)
    yield
    os.close(*ends)


@pytest.mark.parametrize("end", ["end", "kill"])
def test_a_busy_worker_can_be_ended_at_once(
    other_worker: WorkerProcess, tmp_path: Path, end: str
) -> None:
    worker, pipe = other_worker, tmp_path / "pipe"
    outcome: list[BaseException] = []
    os.mkfifo(pipe)

    def wait() -> None:
        try:
            worker.run(pipe.read_bytes)
        except WorkerEnded as ended:
            outcome.append(ended)

    thread = threading.Thread(target=wait)
    thread.start()
    with read_by_another(pipe):
        if end == "end":
            worker.end()
        else:
            worker.process.kill()
        thread.join(timeout=HANG_SECONDS)
    assert [type(ended) for ended in outcome] == [WorkerEnded]
    # A killed process closes its pipe a moment before it can be waited for.
    worker.process.join(timeout=HANG_SECONDS)
    assert not worker.process.is_alive()
    with pytest.raises(WorkerEnded):
        worker.run(divmod, 7, 2)
