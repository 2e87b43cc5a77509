"""`asyncio.timeout` for the road that every request takes: the same promise for about 1 instead of 3 us."""

import asyncio
from types import TracebackType


class TimeLimit:
    """Cancels what the task does inside the block when the time is over, and turns that into `TimeoutError`."""

    __slots__ = ("_expired", "_handle", "_task")

    def __init__(self, seconds: float) -> None:
        """Start the clock: `seconds` from now."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        self._expired = False
        self._handle = loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._expired = True
        assert self._task is not None, "requests are answered in tasks"
        self._task.cancel()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        # Somebody else may have cancelled the task too (a server shutting down): then it stays cancelled.
        if self._expired and self._task is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error
