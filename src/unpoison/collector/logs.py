"""Logs as JSON lines on standard error, with a fixed set of fields."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

FIELDS = (
    *("method", "route", "status", "milliseconds", "cause", "fault", "where", "campaign"),
    *("worker", "code"),
)
"""A record's other attributes are left out, so that no value, token or key is ever logged."""


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON.

    >>> record = logging.makeLogRecord({"msg": "request", "status": 409, "token": "secret"})
    >>> sorted(json.loads(JsonLines().format(record)))
    ['event', 'level', 'status', 'time']
    """

    def format(self, record: logging.LogRecord) -> str:
        """Time, level and event, and those of `FIELDS` that the record has."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        return json.dumps({**head, **fields})


def set_up_logs(level: str) -> None:
    """Send the logs of the collector, of uvicorn and of asyncio to standard error as JSON.

    uvicorn's access log is left out: its lines contain clients' addresses and full paths.

    >>> set_up_logs("info")
    >>> logging.getLogger("unpoison.collector").level == logging.INFO
    True
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("unpoison.collector", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    access = logging.getLogger("uvicorn.access")
    access.handlers, access.propagate = [], False
