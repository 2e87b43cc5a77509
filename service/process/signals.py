"""Signals: SIGHUP (reload, or the terminal was closed), and a socket that wakes a loop at a signal."""

import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class Terminal:
    """The terminal of this process, if it had one at its start."""

    def __init__(self) -> None:
        self._was_there = _is_there()

    @property
    def is_gone(self) -> bool:
        """Whether it was closed."""
        return self._was_there and not _is_there()


class HangupHandler:
    """The SIGHUP handler of a process without a supervisor."""

    def __init__(self) -> None:
        """Install the handler; a signal that comes before `then` is called is remembered."""
        self._terminal = Terminal()
        self._reload: Callable[[], None] | None = None
        self._came = False
        signal.signal(signal.SIGHUP, self._heard)

    def then(self, reload: Callable[[], None]) -> None:
        """Call `reload` for each SIGHUP, and at once if there was one already."""
        self._reload = reload
        if self._came:
            reload()

    def _heard(self, *_: object) -> None:
        if self._terminal.is_gone:  # the default effect of SIGHUP is to end the process
            signal.raise_signal(signal.SIGTERM)
        elif self._reload is None:
            self._came = True
        else:
            self._reload()


@contextmanager
def noted(signals: Iterable[signal.Signals], into: list[int]) -> Iterator[socket.socket]:
    """Append each of these signals to a list; yields a socket that becomes readable at each signal.

    `multiprocessing.connection.wait` does not return at a signal, so it waits for the socket too.
    """
    woken, waker = socket.socketpair()
    woken.setblocking(False)
    waker.setblocking(False)
    before = {sig: signal.signal(sig, lambda sig, _: into.append(sig)) for sig in signals}
    old = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    try:
        with woken, waker:
            yield woken
    finally:
        signal.set_wakeup_fd(old)
        for sig, handler in before.items():
            signal.signal(sig, handler)


def _is_there() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
