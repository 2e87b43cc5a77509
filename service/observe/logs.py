"""Structured logs: one JSON object (or one readable line) per event, with the request id.

Texts, API keys and credentials are never logged. The message of an exception may quote a request, so during a request
only the exception's class and traceback are logged.

A thread writes the lines from a bounded queue, so that a standard error that nobody reads blocks only this thread. When
the queue is full, lines are dropped and counted.
"""

import atexit
import json
import logging
import os
import select
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue
from time import monotonic, sleep
from typing import Any

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
MAX_WAITING = 1000  # lines, of some hundred bytes each
FLUSH_SECONDS = 2.0  # at the process's end
_STDERR = 2


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request id, and the event's own fields."""

    def __init__(self, **constant: object) -> None:
        """Prepare; `constant` are fields of every event."""
        super().__init__()
        self._constant = constant

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON."""
        return json.dumps(self.event(record), default=str)

    def event(self, record: logging.LogRecord) -> dict[str, Any]:
        """All fields of the record."""
        event: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._constant,
        }
        if request_id := REQUEST_ID.get():
            event["request_id"] = request_id
        event |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            event["exception"] = _without_messages(error) if request_id else self.formatException(record.exc_info)
        return event


class TextFormatter(JsonFormatter):
    """The same as readable text."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of text."""
        event = self.event(record)
        trace = event.pop("exception", None)
        head = f"{event.pop('time')} {event.pop('level'):7} {event.pop('message')}"
        event.pop("logger")
        line = " ".join([head, *(f"{key}={value}" for key, value in event.items())])
        return f"{line}\n{trace}" if trace else line


class TerminalFormatter(TextFormatter):
    """For a terminal: start and end of the service in a sentence each, all else as text."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a sentence, where it has one."""
        sentence = _SENTENCES.get(record.getMessage())
        return super().format(record) if sentence is None else sentence.format_map(getattr(record, "fields", {}))


_SENTENCES = {
    "model opened": "opened {model} in {seconds:.1f} s",
    "starting": "all models are there after {seconds:.1f} s",
    "serving": "Semblance answers at {address} (a page to try it; every route: {docs}). Ctrl-C ends it.",
    "draining": "ending: requests in flight are still answered, for {seconds:g} s at most",
}


def _without_messages(error: BaseException | None) -> str:
    """The tracebacks of an exception and of its causes, the first cause first."""
    traces: list[str] = []
    while error is not None:
        traces.append("".join(traceback.format_tb(error.__traceback__)) + type(error).__qualname__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nwhich led to\n".join(reversed(traces))


class _Queued(QueueHandler):
    """Puts formatted lines into the queue; counts those that do not fit."""

    queue: "Queue[logging.LogRecord]"

    def __init__(self, formatter: logging.Formatter, lines: "Queue[logging.LogRecord]") -> None:
        super().__init__(lines)
        self.setFormatter(formatter)
        self.dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        """Add a line without waiting. (The handler's lock is held.)"""
        try:
            self.queue.put_nowait(record)
        except Full:
            self.dropped += 1


class _Lines(logging.Handler):
    """Writes formatted lines to a file descriptor.

    Not through `sys.stderr`: if the thread blocked in it at exit, it would hold its lock, and Python would abort.
    """

    def __init__(self, descriptor: int, queued: _Queued) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._queued = queued
        self._reported = 0

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a line, and the number of lines dropped since the last one."""
        self._write(record.getMessage())
        if (dropped := self._queued.dropped) > self._reported:
            event = logging.LogRecord(__name__, logging.WARNING, "", 0, "log lines were dropped", None, None)
            event.fields = {"lines": dropped - self._reported}
            self._reported = dropped
            self._write(self._queued.format(event))
        return True

    def _write(self, line: str) -> None:
        left = memoryview(f"{line}\n".encode(errors="backslashreplace"))
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another process made it non-blocking
                select.select([], [self._descriptor], [])
            except OSError:  # the reader is gone
                return


_queued: _Queued | None = None


def configure(level: str, **constant: object) -> None:
    """Send all loggers, including uvicorn's, to standard error, with the fields `constant`; called once in a process.

    At a terminal they are sentences, of several processes readable lines, and elsewhere JSON.
    """
    global _queued
    chosen: type[JsonFormatter] = JsonFormatter
    if os.isatty(_STDERR):
        chosen = TextFormatter if constant else TerminalFormatter
    if chosen is TerminalFormatter:
        logging.getLogger("uvicorn").setLevel("WARNING")  # its own words about the start
    formatter = chosen(**constant)
    _queued = _Queued(formatter, Queue(MAX_WAITING))
    QueueListener(_queued.queue, _Lines(_STDERR, _queued)).start()
    atexit.register(write_out)
    root = logging.getLogger()
    root.handlers[:] = [_queued]
    root.setLevel(level.upper())


def write_out() -> None:
    """Wait until this process' lines are written, at its end."""
    deadline = monotonic() + FLUSH_SECONDS
    while _queued is not None and _queued.queue.unfinished_tasks and monotonic() < deadline:
        sleep(0.005)


def dropped() -> int:
    """The number of lines that this process has dropped."""
    return 0 if _queued is None else _queued.dropped


class ThrottledWarning:
    """A warning that clients can cause: logged at once, then at most once every `seconds`, with a count."""

    def __init__(self, to: logging.Logger, message: str, seconds: float = 10.0) -> None:
        self._to = to
        self._message = message
        self._seconds = seconds
        self._count = 0
        self._next = float("-inf")

    def note(self, **more: object) -> None:
        """Count one more, and log it if it is time: with `times` since the last line and the fields `more`."""
        self._count += 1
        if (now := monotonic()) >= self._next:
            self._next = now + self._seconds
            self._to.warning(self._message, extra=fields(times=self._count, **more))
            self._count = 0


def fields(**values: object) -> dict[str, dict[str, object]]:
    """The fields of an event, as the argument `extra` of a logging call."""
    return {"fields": values}
