"""The end of a request's work when its time is over."""

import asyncio
from types import TracebackType
from typing import Self

from service.engine.context import RequestContext

_AGAIN = 0.05  # seconds, at least, between two looks whether there is more time


class TimeLimit:
    """Cancels the current task inside the block `with TimeLimit(context):`.

    The block then raises `TimeoutError` when the context's time is over, or the error of `end`. After a call of `stop`
    it goes on to its end.
    """

    __slots__ = ("_context", "_ended_by", "_entered", "_task", "_timer")

    def __init__(self, context: RequestContext) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "requests are answered in tasks"
        self._task = task
        self._entered = True
        self._ended_by: Exception | type[Exception] | None = None
        self._context = context
        self._timer = loop.call_later(context.left, self._over)

    def _over(self) -> None:
        if (left := self._context.left) > 0:  # it was paused, or is
            self._timer = asyncio.get_running_loop().call_later(max(left, _AGAIN), self._over)
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
