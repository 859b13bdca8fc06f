"""An issuer's process: a socket, and uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import uvicorn

from unpoison.errors import InvalidParameter
from unpoison.issuer.application import application_of
from unpoison.issuer.service import TokenService

CONNECTIONS = 200
"""Most requests at once; each that is signed takes a thread and some hundredths of a second."""
SHUTDOWN_SECONDS = 5
"""Seconds for requests under way to finish after a signal to stop."""


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 takes a free one.

    >>> with listening_socket("127.0.0.1", 0) as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as fault:
        reason = getattr(fault, "strerror", None) or "it is not a port"
        raise InvalidParameter("--port", f"must be free ({reason})", f"{host}:{port}") from None


def web_config(service: TokenService, origins: Sequence[str] = ()) -> uvicorn.Config:
    """The configuration of uvicorn.

    >>> from unpoison.issuer.register import Register
    >>> from unpoison.issuer.signing_keys import SigningKeys
    >>> with Register(None) as register:
    ...     web_config(TokenService(SigningKeys([]), register, 1)).access_log
    False
    """
    return uvicorn.Config(
        application_of(service, origins),
        # Nothing is logged: a log of times and addresses would link accounts with reports.
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        proxy_headers=False,
        ws="none",
    )


def run(
    service: TokenService,
    host: str,
    port: int,
    announce: Callable[[str], None],
    origins: Sequence[str] = (),
) -> None:
    """Serve until a signal comes; `announce` is called with the address once it is bound.

    >>> import os, signal
    >>> from threading import Thread
    >>> from urllib.request import urlopen
    >>> from unpoison.issuer.register import Register
    >>> from unpoison.issuer.signing_keys import SigningKeys
    >>> def stop_once_it_answers(address: str) -> None:
    ...     urlopen(f"{address}/.well-known/private-token-issuer-directory").close()
    ...     os.kill(os.getpid(), signal.SIGINT)
    >>> def announce(address: str) -> None:
    ...     Thread(target=stop_once_it_answers, args=(address,)).start()
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> with Register(None) as register:
    ...     try:
    ...         run(TokenService(SigningKeys([]), register, 1), "127.0.0.1", 0, announce)
    ...     except KeyboardInterrupt:
    ...         print("stopped")
    stopped
    """
    with listening_socket(host, port) as listener:
        bound_host, bound_port = listener.getsockname()[:2]
        shown = f"[{bound_host}]" if ":" in bound_host else bound_host
        announce(f"http://{shown}:{bound_port}")
        uvicorn.Server(web_config(service, origins)).run([listener])
