"""A server of several processes: a supervisor forks them, and replaces those that die."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Thread

from unpoison.collector.http.metrics_server import metrics_server
from unpoison.collector.logs import set_up_logs
from unpoison.collector.server import (
    PreparedServer,
    address_of,
    leave_if_stuck,
    listen,
    listening_socket,
    metrics_socket,
    only_server,
    open_database,
    prepared_database,
    serve,
)
from unpoison.collector.service.collector import Collector
from unpoison.collector.service.housekeeping import Housekeeper
from unpoison.collector.service.key_ring import KeyRing
from unpoison.collector.service.worker_role import WorkerRole
from unpoison.collector.settings import Settings
from unpoison.collector.storage.change_signal import ChangeSignal
from unpoison.collector.storage.database import database_url, sqlite_file
from unpoison.collector.storage.forwarded_writes import WriteAddress, committing_for_others
from unpoison.errors import InvalidParameter

SHORTEST_LIFE = 1.0
"""Seconds between two starts of a worker: one that fails at once must not occupy the machine."""
KEY_BYTES = 32
"""Of the key that workers show each other: 256 bits, which nobody guesses."""
FAILED = 1
"""Exit code of a worker that could not start."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that end a server: of service managers, and of a terminal."""
log = logging.getLogger("unpoison.collector")


def run_workers(settings: Settings, announce: Callable[[str, PreparedServer], None]) -> None:
    """Serve with several processes until a signal comes.

    The database is made ready, and the port bound, before the first worker is forked: what is
    wrong with the settings is reported once, and a worker that is replaced keeps its socket.

    >>> with TemporaryDirectory() as folder, listen("127.0.0.1", 0, "--port") as taken:
    ...     port = taken.getsockname()[1]
    ...     settings = Settings.load(database=f"{folder}/reports.db", port=port, workers=2)
    ...     run_workers(settings, lambda address, prepared: None)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: --port must be free (Address already in use); received ...
    """
    if not hasattr(os, "fork"):
        raise InvalidParameter("workers", "must be 1 on this system", settings.workers)
    with ExitStack() as stack:
        stack.enter_context(only_server(settings))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="unpoison-")))
        chosen = roles(settings, folder)
        # A socket of a process that does not accept would keep devices waiting for ever.
        answering = [role for role in chosen if role.answers]
        listeners = shared_listeners(settings, len(answering))
        for listener in listeners:
            stack.enter_context(listener)
        metrics_listener = metrics_socket(settings)
        with prepared_database(settings) as prepared:
            announce(address_of(listeners[0]), prepared)
        # Its connections are closed by now: forked, they would be used by two processes at once.
        set_up_logs(settings.log_level)
        sockets = dict(zip(answering, listeners, strict=True))
        workers = [
            _Worker(settings, prepared.keys, role, sockets.get(role), metrics_listener)
            for role in chosen
        ]
        Supervisor(workers).run()


def roles(settings: Settings, folder: Path) -> list[WorkerRole]:
    """The roles of the workers that settings ask for.

    >>> sqlite = roles(Settings.load(workers=3), Path("folder"))
    >>> [role.answers for role in sqlite], [role.forwards for role in sqlite]
    ([False, True, True], [False, True, True])
    """
    changes, writer = ChangeSignal(), None
    if sqlite_file(database_url(settings.database.get_secret_value())) is not None:
        writer = WriteAddress(str(folder / "writer.sock"), secrets.token_bytes(KEY_BYTES))
    return [WorkerRole(index, folder, writer, changes) for index in range(settings.workers)]


def shared_listeners(settings: Settings, number: int) -> list[socket.socket]:
    """So many sockets, all at one port.

    >>> from contextlib import closing
    >>> first, second = shared_listeners(Settings.load(port=0), 2)
    >>> with closing(first), closing(second):
    ...     first.getsockname() == second.getsockname()
    True
    """
    # Bound alone first: a port that is shared from the start would be shared with any server that
    # is there already.
    alone = listening_socket(settings)
    if sys.platform != "linux":
        # Others do not spread connections over sockets; their processes accept from one.
        return [alone] * number
    with alone:
        port = alone.getsockname()[1]
    return [listen(settings.host, port, "--port", shared=True) for _ in range(number)]


@dataclass(frozen=True)
class _Worker:
    """What a worker process runs."""

    settings: Settings
    keys: KeyRing
    role: WorkerRole
    listener: socket.socket | None
    """Where it answers; None for the one that writes for the others."""
    metrics_listener: socket.socket | None

    def run(self) -> None:
        """Serve until a signal comes."""
        metrics_listener = self.metrics_listener if self.role.leads else None
        with open_database(self.settings) as database:
            collector = Collector(self.settings, database, self.keys, role=self.role)
            if self.listener is not None:
                serve(collector, self.listener, metrics_listener)
            else:
                asyncio.run(_write(collector, metrics_listener))
                leave_if_stuck(collector)


async def _write(collector: Collector, metrics_listener: socket.socket | None) -> None:
    """Commit for the other workers, and do the periodic jobs, until a signal comes."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # Ctrl-C reaches all processes of a terminal: the others still have to be committed for.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    address = collector.role.writer
    if address is None:
        raise ValueError("this worker commits for no others")
    async with (
        collector,
        Housekeeper(collector),
        metrics_server(collector, metrics_listener),
        committing_for_others(collector.writer, address),
    ):
        await stopped.wait()


class Supervisor:
    """Forks workers, replaces those that end, and ends them all when it is told to stop.

    >>> Supervisor([]).run()
    """

    def __init__(self, workers: list[_Worker]) -> None:
        self.workers = workers
        self.pids: dict[int, int] = {}
        """The index of each worker, by its process id."""
        self.started: dict[int, float] = {}
        """When each worker was started last, by its index."""
        self.stopping = False
        self.alive_read, self.alive_write = os.pipe()
        """A pipe that nobody writes to: workers read its end when the supervisor is gone."""
        self.killed = False
        """In a worker: whether the supervisor is gone."""

    def run(self) -> None:
        """Run the workers until SIGTERM or SIGINT; returns after the last has ended."""
        with _handling(dict.fromkeys(STOP_SIGNALS, self._stop)):
            for index in range(len(self.workers)):
                self._start(index)
            while self.pids:
                self._wait()

    def _wait(self) -> None:
        """Wait for the end of any worker, and replace it unless all are to end."""
        pid, status = os.waitpid(-1, 0)
        index = self.pids.pop(pid, None)
        if index is None:
            return
        if self.stopping:
            self._end_workers()
            return
        code = os.waitstatus_to_exitcode(status)
        log.error("a worker ended; another is started", extra={"worker": index, "code": code})
        time.sleep(max(0.0, self.started[index] + SHORTEST_LIFE - time.monotonic()))
        if not self.stopping:
            self._start(index)

    def _start(self, index: int) -> None:
        self.started[index] = time.monotonic()
        # Signals wait until the new process is known here and has its own handlers there: with
        # those of the supervisor it would take a signal to stop for one to its workers.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        pid = os.fork()
        if pid == 0:
            self._become(self.workers[index])
        self.pids[pid] = index
        if self.stopping:
            self._end_workers()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def _become(self, worker: _Worker) -> None:
        """Run a worker in this process, which was just forked; never returns."""
        code = FAILED
        try:
            os.close(self.alive_write)
            for number in STOP_SIGNALS:
                signal.signal(number, lambda *_: sys.exit(0))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            Thread(target=self._end_with_supervisor, daemon=True).start()
            worker.run()
            code = 0
        except SystemExit:
            code = 0
        except Exception as fault:
            log.error("a worker failed", extra={"fault": type(fault).__name__})
        finally:
            self._remove_folder_of_the_dead(worker.role)
            os._exit(code)

    def _end_with_supervisor(self) -> None:
        os.read(self.alive_read, 1)
        self.killed = True
        os.kill(os.getpid(), signal.SIGTERM)

    def _remove_folder_of_the_dead(self, role: WorkerRole) -> None:
        """Remove the workers' folder, which a supervisor that was killed has left."""
        # By the first worker: where it commits for the others, it is the last that needs it.
        if self.killed and role.leads and role.folder is not None:
            rmtree(role.folder, ignore_errors=True)

    def _stop(self, *_: object) -> None:
        self.stopping = True
        self._end_workers()

    def _end_workers(self) -> None:
        """End those who answer first: the one that writes has to commit what they were told."""
        answering = [pid for pid, index in self.pids.items() if self.workers[index].role.answers]
        for pid in answering or list(self.pids):
            # One that has just ended may not have been struck off yet.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


@contextmanager
def _handling(
    handlers: Mapping[signal.Signals, Callable[..., None]],
) -> Iterator[None]:
    """Handle signals during the block, and as before afterwards."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
