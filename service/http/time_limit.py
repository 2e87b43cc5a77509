"""The time limit of a request, and the end of its work when the client leaves.

`asyncio.timeout` does the first of these, and takes twice as long for each request.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

_AGAIN = 0.05  # seconds, at least, between two looks whether there is more time


class ClientLeft(Exception):
    """The client has closed its connection before the answer."""


class TimeLimit:
    """Cancels the current task inside the block `with TimeLimit(seconds):`.

    The block then raises `TimeoutError` when the time is over, or the error of `end`. After a call of `stop` it goes on
    to its end. `free` says how many seconds so far do not count.
    """

    __slots__ = ("_ended_by", "_entered", "_free", "_given", "_task", "_timer")

    def __init__(self, seconds: float, free: Callable[[], float] = float) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "requests are answered in tasks"
        self._task = task
        self._entered = True
        self._ended_by: Exception | type[Exception] | None = None
        self._free = free
        self._given = 0.0
        self._timer = loop.call_later(seconds, self._over)

    def _over(self) -> None:
        more = self._free() - self._given
        if more > 0:
            more = max(more, _AGAIN)
            self._given += more
            self._timer = asyncio.get_running_loop().call_later(more, self._over)
        else:
            self.end(TimeoutError)

    def end(self, by: Exception | type[Exception]) -> None:
        """End the block with an error; no effect after the block."""
        if self._entered and self._ended_by is None:
            self._ended_by = by
            self._task.cancel()

    def stop(self) -> None:
        """End nothing any more."""
        self._entered = False
        self._timer.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        # A server that shuts down may have cancelled the task too: then it stays cancelled.
        if self._ended_by is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise self._ended_by from error
