"""SIGHUP: look at the models again. It also says that the terminal is closed that a process was started from."""

import os
import signal
from collections.abc import Callable


class Terminal:
    """The terminal that this process was started from, if it was."""

    def __init__(self) -> None:
        self._was_there = _is_there()

    @property
    def is_gone(self) -> bool:
        """Whether it was closed."""
        return self._was_there and not _is_there()


class Hangup:
    """Listens to SIGHUP in a process that serves alone."""

    def __init__(self) -> None:
        """Listen; what comes before `then` is known is remembered."""
        self._terminal = Terminal()
        self._reload: Callable[[], None] | None = None
        self._came = False
        signal.signal(signal.SIGHUP, self._heard)

    def then(self, reload: Callable[[], None]) -> None:
        """What to do."""
        self._reload = reload
        if self._came:
            reload()

    def _heard(self, *_: object) -> None:
        if self._terminal.is_gone:  # as if there were nobody who listens
            signal.raise_signal(signal.SIGTERM)
        elif self._reload is None:
            self._came = True
        else:
            self._reload()


def _is_there() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
