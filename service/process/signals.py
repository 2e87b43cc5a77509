"""Signals of a process that serves: SIGHUP (reload, or the terminal was closed); SIGTERM and SIGINT, before uvicorn."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from service.observe.logs import fields

if TYPE_CHECKING:  # the parent of several workers opens nothing
    from service.service import Service

log = logging.getLogger(__name__)


class Terminal:
    """The terminal of this process, if it had one at its start, and is to end with it."""

    def __init__(self) -> None:
        """Look for it, before SIGHUP has a handler: `nohup` has it ignored."""
        self._was_there = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and _is_there()

    @property
    def is_gone(self) -> bool:
        """Whether it was closed."""
        return self._was_there and not _is_there()


class HangupHandler:
    """The SIGHUP handler of a process that serves."""

    def __init__(self, terminal: Terminal | None = None) -> None:
        """Install the handler; a signal that comes before `then` is called is remembered.

        Args:
            terminal: whose end ends the process; a worker's parent sees to that.
        """
        self._terminal = terminal
        self._reload: Callable[[], None] | None = None
        self._came = False
        signal.signal(signal.SIGHUP, self._heard)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])  # a worker is started with it blocked

    def then(self, reload: Callable[[], None]) -> None:
        """Call `reload` for each SIGHUP, and at once if there was one already."""
        self._reload = reload
        if self._came:
            reload()

    def _heard(self, *_: object) -> None:
        if self._terminal is not None and self._terminal.is_gone:  # the default effect of SIGHUP is to end the process
            signal.raise_signal(signal.SIGTERM)
        elif self._reload is None:
            self._came = True
        else:
            self._reload()


class StopHandler:
    """Has a service drain at SIGTERM before uvicorn stops it; SIGINT, or a second signal, stops it at once.

    SIGUSR1 tells a worker that it was replaced: it ends in the same way, but says of the service that it is ready, and
    leaves new connections to the others, so that none is open without a request when it stops.
    """

    def __init__(self, service: "Service") -> None:
        """Take the place of uvicorn's handlers, which it installed before; in the running event loop."""
        self._service = service
        self._seconds = service.settings.drain_seconds
        self._loop = asyncio.get_running_loop()
        self._stop = {sig: signal.signal(sig, self._heard) for sig in (signal.SIGTERM, signal.SIGINT)}
        self._stop[signal.SIGUSR1] = self._stop[signal.SIGTERM]
        signal.signal(signal.SIGUSR1, self._heard)

    def _heard(self, sig: int, frame: FrameType | None) -> None:
        again = self._service.shutting_down or self._service.replaced
        if sig == signal.SIGUSR1:
            self._service.replaced, sig = True, signal.SIGTERM
            self._loop.call_soon_threadsafe(_stop_listening, self._stop[sig])
        else:
            self._service.shutting_down = True
        stop = self._stop[signal.Signals(sig)]
        assert callable(stop), "uvicorn's handler"
        if again or sig == signal.SIGINT or not self._seconds:
            stop(sig, frame)
        else:
            log.info("draining", extra=fields(seconds=self._seconds))
            self._loop.call_soon_threadsafe(self._loop.call_later, self._seconds, stop, sig, None)


def _stop_listening(handler: object) -> None:
    """Close the listening sockets of the uvicorn server whose handler of signals this is."""
    server = getattr(handler, "__self__", None)
    assert isinstance(server, uvicorn.Server)
    for each in server.servers:
        each.close()


def _is_there() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
