"""A server process: database, keys, collector and web server, from settings."""

from __future__ import annotations

import gc
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from sqlalchemy import URL

from unpoison.collector.clock import Clock
from unpoison.collector.http.application import application_of
from unpoison.collector.http.connection import protocol
from unpoison.collector.http.logs import set_up_logs
from unpoison.collector.service.collector import Collector
from unpoison.collector.service.keys import KeyFile
from unpoison.collector.settings import Settings
from unpoison.collector.storage.database import Database, database_url, sqlite_file
from unpoison.collector.storage.migration import checked_revision, migrate, newest, refuse_foreign
from unpoison.collector.storage.operator_tokens import add_operator, operator_hashes
from unpoison.errors import InvalidParameter
from unpoison.system.paths import check_output

SHUTDOWN_SECONDS = 10
SPARE = 2
"""The guard refuses what is too much, in words; what is more than that again, the web server."""
STUCK = 1
RARELY = (50_000, 50, 100)
log = logging.getLogger("unpoison.collector")


@dataclass(frozen=True)
class Prepared:
    """What a server starts with; `token` is a new operator's, if there was none.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> with scratch_database() as database:
    ...     Prepared(database, keys=["a key"], token=None, backup=None).keys
    ['a key']
    """

    database: Database
    keys: list[str]
    token: str | None
    backup: str | None


@contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """The database that settings name, reachable.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with opened(Settings.load(database=f"{folder}/reports.db")) as database:
    ...         database.url.drivername
    'sqlite'
    """
    url = database_url(settings.database.get_secret_value())
    refuse_foreign(sqlite_file(url))
    database = Database(url)
    try:
        if not database.answers():
            place = url.render_as_string(hide_password=True)
            raise InvalidParameter("database", "must be one that can be opened", place)
        yield database
    finally:
        database.close()


@contextmanager
def prepared(settings: Settings) -> Iterator[Prepared]:
    """Everything in place: schema, keys, and a first operator.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.load(database=f"{folder}/reports.db")
    ...     with prepared(settings) as first:
    ...         print(first.token is None)
    ...     with prepared(settings) as again:
    ...         print(again.token is None)
    False
    True
    """
    with opened(settings) as database:
        backup = migrate(database)
        keys = KeyFile(settings.keys).load_or_make()
        with database.writing() as connection:
            known = settings.operator_token is not None or operator_hashes(connection)
            token = None if known else add_operator(connection, Clock().now())
        yield Prepared(database, keys, token, None if backup is None else str(backup))


def check(settings: Settings) -> dict[str, str]:
    """What a start would find, without changing anything.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     check(Settings.load(database=f"{folder}/reports.db"))["schema"]
    'none yet; would become 0002'
    """
    url = database_url(settings.database.get_secret_value())
    at, wanted = _schema(settings, url), newest()
    keys = KeyFile(settings.keys)
    kept = f"{len(keys.load())}" if settings.keys.exists() else "new"
    return {
        "address": f"http://{settings.host}:{settings.port}",
        "database": url.render_as_string(hide_password=True),
        "schema": wanted if at == wanted else f"{at or 'none yet'}; would become {wanted}",
        "keys": f"{settings.keys} ({kept})",
    }


def _schema(settings: Settings, url: URL) -> str | None:
    """The schema of a database; a file that is not there yet is not made."""
    file = sqlite_file(url)
    if file is not None and not file.exists():
        check_output(file, "database")
        return None
    with opened(settings) as database:
        return checked_revision(database)


def bound(settings: Settings) -> socket.socket:
    """A socket that listens where settings say.

    >>> with bound(Settings.load(port=0)) as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as fault:
        listener.close()
        place = f"{settings.host}:{settings.port}"
        raise InvalidParameter("--port", f"must be free ({fault.strerror})", place) from None
    listener.listen(2048)
    return listener


def web_config(settings: Settings, collector: Collector) -> uvicorn.Config:
    """How the web server runs; only proxies that are trusted may say whom they ask for.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> with scratch_database() as database:
    ...     settings = Settings.load(connections=50)
    ...     web_config(settings, Collector(settings, database, ["a key"])).limit_concurrency
    100
    """
    return uvicorn.Config(
        application_of(collector),
        http=protocol(settings.request_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=SPARE * settings.connections,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        forwarded_allow_ips=settings.trusted_proxies,
        proxy_headers=bool(settings.trusted_proxies),
        ws="none",
    )


def run(settings: Settings, told: Callable[[str, Prepared], None]) -> None:
    """Serve until a signal comes; `told` hears the address once it can be used.

    >>> import signal
    >>> from tempfile import TemporaryDirectory
    >>> from threading import Thread
    >>> from urllib.request import urlopen
    >>> def stop_once_it_answers(address: str) -> None:
    ...     urlopen(f"{address}/healthz").close()
    ...     os.kill(os.getpid(), signal.SIGINT)
    >>> def told(address: str, parts: Prepared) -> None:
    ...     print(address.startswith("http://127.0.0.1:"))
    ...     Thread(target=stop_once_it_answers, args=(address,)).start()
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.load(database=f"{folder}/reports.db", port=0, log_level="error")
    ...     try:
    ...         run(settings, told)
    ...     except KeyboardInterrupt:
    ...         print("stopped")
    True
    stopped
    """
    with bound(settings) as listener, prepared(settings) as parts:
        set_up_logs(settings.log_level)
        collector = Collector(settings, parts.database, parts.keys)
        config = web_config(settings, collector)
        host, port = listener.getsockname()[:2]
        told(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", parts)
        _settle_memory()
        uvicorn.Server(config).run([listener])
        if collector.writer.stuck:
            log.error("the database does not answer: it is not waited for")
            os._exit(STUCK)


def _settle_memory() -> None:
    """What is loaded now stays: to look through it for garbage would stop answers for a while."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARELY)
