"""Structured logs: one JSON object (or one readable line) per event, carrying the request id.

Texts, API keys and credentials are never logged. What an exception says may quote a request; so while one is
answered only its kind, and where in the code it was raised, are.
"""

import json
import logging
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")


class _Formatter(logging.Formatter):
    """What both forms have."""

    def __init__(self, **constant: object) -> None:
        """Prepare it; `constant` is what every event carries."""
        super().__init__()
        self.constant = constant


class JsonFormatter(_Formatter):
    """One JSON object a line: time, level, logger, message, request id, and the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record."""
        return json.dumps(_event(self, record), default=str)


class TextFormatter(_Formatter):
    """The same for people at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record."""
        event = _event(self, record)
        trace = event.pop("exception", None)
        head = f"{event.pop('time')} {event.pop('level'):7} {event.pop('message')}"
        event.pop("logger")
        line = " ".join([head, *(f"{key}={value}" for key, value in event.items())])
        return f"{line}\n{trace}" if trace else line


def _event(formatter: _Formatter, record: logging.LogRecord) -> dict[str, Any]:
    event: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        **formatter.constant,
    }
    if request_id := REQUEST_ID.get():
        event["request_id"] = request_id
    event |= getattr(record, "fields", {})
    if record.exc_info and record.exc_info[1] is not None:
        event["exception"] = (
            _without_messages(record.exc_info[1]) if request_id else formatter.formatException(record.exc_info)
        )
    return event


def _without_messages(error: BaseException | None) -> str:
    """The traces of an exception and of those that led to it, the first one first."""
    traces: list[str] = []
    while error is not None:
        traces.append("".join(traceback.format_tb(error.__traceback__)) + type(error).__qualname__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nwhich led to\n".join(reversed(traces))


def configure(level: str, style: Literal["json", "text"], **constant: object) -> None:
    """Send every logger, uvicorn's included, to stderr in one form; `constant` is what every event carries."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(**constant) if style == "json" else TextFormatter(**constant))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def fields(**values: object) -> dict[str, dict[str, object]]:
    """`extra=` of a logging call: what the event carries beside its message."""
    return {"fields": values}
