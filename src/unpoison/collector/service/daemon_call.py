"""Blocking calls that must not keep the server from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")


async def daemon_call(function: Callable[[], Result]) -> Result:
    """The result of a function that runs in a daemon thread; whoever is cancelled leaves it there.

    The threads of `asyncio.to_thread` are joined when the event loop is closed, and when Python
    ends, however long their calls take.

    >>> asyncio.run(daemon_call(lambda: 6 * 7))
    42
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, fault: BaseException | None) -> None:
        if outcome.done():
            return
        if fault is not None:
            outcome.set_exception(fault)
        else:
            outcome.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, fault = None, None
        try:
            result = function()
        except BaseException as raised:
            fault = raised
        # The loop may have been closed meanwhile: then nobody waits for the result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, fault)

    threading.Thread(target=run, daemon=True).start()
    return await outcome
