"""The worker process returns what functions return and raise, and can be ended while it is busy."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from support.waiting import HANG_SECONDS
from unpoison import InvalidParameter, Plan
from unpoison.collector.service.worker_process import WorkerEnded, WorkerProcess

pytestmark = pytest.mark.slow

LONG_SECONDS = 600.0


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
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


@pytest.mark.parametrize("end", ["end", "kill"])
def test_a_busy_worker_can_be_ended_at_once(worker: WorkerProcess, end: str) -> None:
    worker.run(os.getpid)
    outcome: list[BaseException] = []

    def wait() -> None:
        try:
            worker.run(time.sleep, LONG_SECONDS)
        except WorkerEnded as ended:
            outcome.append(ended)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
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
