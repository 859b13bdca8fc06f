"""A server process: opens database and keys as settings say, and runs the web server."""

from __future__ import annotations

import errno
import gc
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import uvicorn
from sqlalchemy import URL

from unpoison.collector.clock import Clock
from unpoison.collector.http.application import application_of
from unpoison.collector.http.connection import limited_protocol
from unpoison.collector.http.connection_slots import ConnectionSlots, reserve_for
from unpoison.collector.logs import set_up_logs
from unpoison.collector.service.collector import Collector
from unpoison.collector.service.key_ring import KeyRing, accept_keys, check_keys, claimed_keys
from unpoison.collector.service.signing_keys import KeyFile, SigningKey
from unpoison.collector.settings import Settings
from unpoison.collector.storage.database import Database, database_url, sqlite_file
from unpoison.collector.storage.migration import (
    checked_revision,
    lock_against_other_servers,
    migrate,
    newest,
    refuse_foreign,
)
from unpoison.collector.storage.operator_tokens import add_operator, stored_operators
from unpoison.errors import InvalidParameter
from unpoison.system.open_files import allow_open_files
from unpoison.system.paths import check_output
from unpoison.system.process_lock import LockHeld, process_lock

SHUTDOWN_SECONDS = 10
"""Seconds for requests under way to finish after a signal to stop; a commit takes milliseconds."""
OTHER_FILES = 64
"""Open files besides connections: the database with its logs, pipes to the worker process, files
that are being sent."""
BACKLOG = 2048
"""Connections that the system accepts before the server does: bursts of devices wait here."""
EXIT_DATABASE_HANGS = 1
"""Exit code when the writer thread has to be left behind in the database."""
GC_THRESHOLDS = (50_000, 50, 100)
"""Python's garbage collector runs far more rarely than by default (700, 10, 10): requests leave
few reference cycles, and each run holds up all requests."""
log = logging.getLogger("unpoison.collector")


@dataclass(frozen=True)
class PreparedServer:
    """Database and keys of a server that is ready to start.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database:
    ...     PreparedServer(database, KeyRing([SigningKey("a key")]), None, None).keys.state
    'same'
    """

    database: Database
    keys: KeyRing
    token: str | None
    """A new operator's token, if there was no operator yet; it cannot be read again."""
    backup: str | None
    """The copy of an SQLite file that was made before its schema was upgraded."""


@contextmanager
def open_database(settings: Settings) -> Iterator[Database]:
    """Open the database that settings name; an error if it cannot be written to.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with open_database(Settings.load(database=f"{folder}/reports.db")) as database:
    ...         database.url.drivername
    'sqlite'
    """
    url = database_url(settings.database.get_secret_value())
    refuse_foreign(sqlite_file(url))
    database = Database(url)
    try:
        if not database.is_writable():
            name = url.render_as_string(hide_password=True)
            raise InvalidParameter(
                "database", "must be a database that can be opened and written to", name
            )
        yield database
    finally:
        database.close()


@contextmanager
def only_server(settings: Settings) -> Iterator[None]:
    """Keep other servers from an SQLite file; several may share a PostgreSQL database.

    Processes that a server starts belong to it, and do not take the lock themselves.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.load(database=f"{folder}/reports.db")
    ...     with only_server(settings), only_server(settings):
    ...         pass
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: database must not be in use by another server; ...
    """
    file = sqlite_file(database_url(settings.database.get_secret_value()))
    if file is None:
        yield
        return
    check_output(file, "database")
    # Before a lock file is left beside a file of another program.
    refuse_foreign(file)
    # One lock for all names by which links lead to the file.
    target = file.resolve()
    try:
        with process_lock(target.with_name(f"{target.name}.lock")):
            yield
    except LockHeld as fault:
        rule = "must not be in use by another server"
        received = f"{file}, which process {fault.holder} serves"
        raise InvalidParameter("database", rule, received) from None


@contextmanager
def prepared_server(settings: Settings) -> Iterator[PreparedServer]:
    """Take the database for this server alone, if it is an SQLite file, and make it ready.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.load(database=f"{folder}/reports.db")
    ...     with prepared_server(settings) as first:
    ...         print(first.token is None)
    ...     with prepared_server(settings) as again:
    ...         print(again.token is None)
    False
    True
    """
    with only_server(settings), prepared_database(settings) as prepared:
        yield prepared


@contextmanager
def prepared_database(settings: Settings) -> Iterator[PreparedServer]:
    """Upgrade the schema, load or make keys, and make a first operator's token if there is none.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.load(database=f"{folder}/reports.db")
    ...     with prepared_database(settings) as prepared:
    ...         len(prepared.keys.fingerprints)
    1
    """
    with open_database(settings) as database:
        backup = migrate(database)
        with database.writing() as connection:
            lock_against_other_servers(connection)
            keys = claimed_keys(connection, KeyFile(settings.keys), Clock().now())
            has_operator = settings.operator_token is not None or stored_operators(connection)
            token = None if has_operator else add_operator(connection, Clock().now())
        yield PreparedServer(database, keys, token, None if backup is None else str(backup))


def register_file_keys(settings: Settings, keys: Sequence[SigningKey]) -> None:
    """Make these the keys of the servers of a database, which is made if there is none.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.load(database=f"{folder}/reports.db")
    ...     register_file_keys(settings, KeyFile(settings.keys).load_or_make())
    """
    with open_database(settings) as database:
        migrate(database)
        with database.writing() as connection:
            lock_against_other_servers(connection)
            accept_keys(connection, keys)


def check(settings: Settings) -> dict[str, str]:
    """Describe what a start would use and change, without changing anything.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     check(Settings.load(database=f"{folder}/reports.db"))["schema"][:23]
    'none yet; would become '
    """
    url = database_url(settings.database.get_secret_value())
    present, wanted = _present_schema(settings, url), newest()
    keys = len(KeyFile(settings.keys).load()) if settings.keys.exists() else "new"
    if present == wanted:
        with open_database(settings) as database, database.reading() as connection:
            check_keys(connection, KeyFile(settings.keys), Clock().now())
    return {
        "address": f"http://{settings.host}:{settings.port}",
        "database": url.render_as_string(hide_password=True),
        "schema": wanted
        if present == wanted
        else f"{present or 'none yet'}; would become {wanted}",
        "keys": f"{settings.keys} ({keys})",
    }


def _present_schema(settings: Settings, url: URL) -> str | None:
    """The schema revision of a database; a file that does not exist yet is not made."""
    file = sqlite_file(url)
    if file is not None and not file.exists():
        check_output(file, "database")
        return None
    with open_database(settings) as database:
        return checked_revision(database)


def listening_socket(settings: Settings) -> socket.socket:
    """A socket that listens at the address and port of the settings.

    >>> with listening_socket(Settings.load(port=0)) as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    """
    return listen(settings.host, settings.port, "--port")


def metrics_socket(settings: Settings) -> socket.socket | None:
    """A socket for the metrics, if they are to have a port of their own.

    >>> metrics_socket(Settings.load()) is None
    True
    """
    if settings.metrics_port is None:
        return None
    return listen(settings.metrics_host, settings.metrics_port, "metrics_port")


def listen(host: str, port: int, name: str, shared: bool = False) -> socket.socket:
    """A socket that listens; a shared port has several, and the system spreads connections.

    >>> with listen("127.0.0.1", 0, "--port", shared=True) as first:
    ...     with listen("127.0.0.1", first.getsockname()[1], "--port", shared=True) as second:
    ...         first.getsockname() == second.getsockname()
    True
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if sys.platform != "win32":
        # A port is free again right after a stop. Windows lets two servers listen at one port
        # with this option, and needs it for nothing else.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
    except OSError as fault:
        listener.close()
        if isinstance(fault, socket.gaierror) or fault.errno == errno.EADDRNOTAVAIL:
            rule = "must be an address of this machine"
            raise InvalidParameter(name.replace("port", "host"), rule, host) from None
        address = f"{host}:{port}"
        raise InvalidParameter(name, f"must be free ({fault.strerror})", address) from None
    listener.listen(BACKLOG)
    return listener


def connection_slots(settings: Settings) -> ConnectionSlots:
    """As many connections as settings ask for and the system's limit on open files allows.

    >>> connection_slots(Settings.load(connections=50)).most
    50
    """
    reserve = reserve_for(settings.connections)
    others = reserve + OTHER_FILES
    allowed = allow_open_files(settings.connections + others)
    most = max(1, min(settings.connections, allowed - others))
    if most < settings.connections:
        log.warning("the limit on open files allows fewer connections than the settings")
    return ConnectionSlots(most, reserve)


def web_config(
    settings: Settings, collector: Collector, metrics_listener: socket.socket | None = None
) -> uvicorn.Config:
    """The configuration of uvicorn.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database:
    ...     settings = Settings.load(connections=50)
    ...     web_config(settings, Collector(settings, database, ["a key"])).http.__name__
    'LimitedConnection'
    """
    return uvicorn.Config(
        application_of(collector, metrics_listener),
        http=limited_protocol(settings.request_seconds, connection_slots(settings)),
        log_config=None,
        # It would log clients' addresses.
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        # By default uvicorn believes X-Forwarded-For from this machine: any local process could
        # then choose the address that rate limits count.
        forwarded_allow_ips=settings.trusted_proxies,
        proxy_headers=bool(settings.trusted_proxies),
        ws="none",
    )


def run(settings: Settings, announce: Callable[[str, PreparedServer], None]) -> None:
    """Serve until a signal comes; `announce` is called with the address once it is bound.

    >>> import signal
    >>> from tempfile import TemporaryDirectory
    >>> from threading import Thread
    >>> from urllib.request import urlopen
    >>> def stop_once_it_answers(address: str) -> None:
    ...     urlopen(f"{address}/healthz").close()
    ...     os.kill(os.getpid(), signal.SIGINT)
    >>> def announce(address: str, prepared: PreparedServer) -> None:
    ...     print(address.startswith("http://127.0.0.1:"))
    ...     Thread(target=stop_once_it_answers, args=(address,)).start()
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.load(database=f"{folder}/reports.db", port=0, log_level="error")
    ...     try:
    ...         run(settings, announce)
    ...     except KeyboardInterrupt:
    ...         print("stopped")
    True
    stopped
    """
    with ExitStack() as stack:
        listener = stack.enter_context(listening_socket(settings))
        # Before the first operator's token is made and printed: a port that is taken ends this.
        metrics_listener = metrics_socket(settings)
        if metrics_listener is not None:
            stack.enter_context(metrics_listener)
        prepared = stack.enter_context(prepared_server(settings))
        set_up_logs(settings.log_level)
        collector = Collector(settings, prepared.database, prepared.keys)
        announce(address_of(listener), prepared)
        serve(collector, listener, metrics_listener)


def address_of(listener: socket.socket) -> str:
    """The URL at which a socket listens.

    >>> with listen("127.0.0.1", 0, "--port") as listener:
    ...     address_of(listener).rpartition(":")[0]
    'http://127.0.0.1'
    """
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    collector: Collector, listener: socket.socket, metrics_listener: socket.socket | None
) -> None:
    """Answer at a socket until a signal comes; `run` and `run_workers` lead here.

    >>> import signal
    >>> from threading import Thread
    >>> from urllib.request import urlopen
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> def stop_once_it_answers(address: str) -> None:
    ...     urlopen(f"{address}/healthz").close()
    ...     os.kill(os.getpid(), signal.SIGINT)
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> with temporary_database() as database, listen("127.0.0.1", 0, "--port") as listener:
    ...     Thread(target=stop_once_it_answers, args=(address_of(listener),)).start()
    ...     try:
    ...         serve(Collector(Settings.load(), database, ["a key"]), listener, None)
    ...     except KeyboardInterrupt:
    ...         print("stopped")
    stopped
    """
    config = web_config(collector.settings, collector, metrics_listener)
    tune_garbage_collector()
    try:
        # It raises the signal once more when it has stopped.
        uvicorn.Server(config).run([listener])
    finally:
        leave_if_stuck(collector)


def leave_if_stuck(collector: Collector) -> None:
    """End the process at once if its writer thread is still in the database.

    A normal exit would join the thread, which may never return.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database:
    ...     leave_if_stuck(Collector(Settings.load(), database, ["a key"]))
    """
    if collector.writer.stuck:
        log.error("the database does not answer; stopping without it")
        os._exit(EXIT_DATABASE_HANGS)


def tune_garbage_collector() -> None:
    """Exempt what is loaded from garbage collection: it stays, and scanning it pauses requests.

    >>> before = gc.get_threshold()
    >>> tune_garbage_collector()
    >>> gc.get_freeze_count() > 0
    True
    >>> gc.set_threshold(*before)
    """
    # Without the oldest generation, which takes a twentieth of a start and has no garbage yet.
    gc.collect(1)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
