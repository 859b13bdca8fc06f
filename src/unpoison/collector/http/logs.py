"""Logs for machines: one JSON object a line, with known fields only."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

FIELDS = ("method", "route", "status", "milliseconds", "cause", "fault", "where", "campaign")
"""Whatever else a record has is left out: values, tokens and keys have no field."""


class JsonLines(logging.Formatter):
    """A record as one line.

    >>> record = logging.makeLogRecord({"msg": "request", "status": 409, "token": "secret"})
    >>> sorted(json.loads(JsonLines().format(record)))
    ['event', 'level', 'status', 'time']
    """

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, event, and the fields that it has."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        known = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        return json.dumps({**head, **known})


def set_up_logs(level: str) -> None:
    """Everything that the collector and its web server say goes to standard error as JSON.

    The web server's own lines about requests are left out: they would repeat addresses in full.

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
