"""`asyncio.timeout` for the road that every request takes: the same promise for a fraction of the cost.

All requests have the same limit, so the one that began first is the one that expires first, and a single timer does for
all of them; making and cancelling one for each costs more than finding a score.
"""

import asyncio
from types import TracebackType


class TimeLimits:
    """A limit for many tasks of one event loop; `with limits.begin():` holds one of them to it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[_Limit, None] = {}  # the first to expire first
        self._timer_of: asyncio.AbstractEventLoop | None = None  # whose timer is set

    def begin(self) -> "_Limit":
        """Start the clock of the current task.

        What the task does inside the block is cancelled when the time is over, and the block raises `TimeoutError`.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "requests are answered in tasks"
        limit = _Limit(self._running, task, loop.time() + self._seconds)
        if self._timer_of is not loop:
            self._set_timer(loop, limit.expires)
        return limit

    def _set_timer(self, loop: asyncio.AbstractEventLoop, expires: float) -> None:
        self._timer_of = loop
        loop.call_at(expires, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for limit in list(self._running):
            if limit.expires > now:
                self._set_timer(loop, limit.expires)
                return
            limit.expire()
        self._timer_of = None


class _Limit:
    __slots__ = ("_expired", "_running", "_task", "expires")

    def __init__(self, running: "dict[_Limit, None]", task: "asyncio.Task[object]", expires: float) -> None:
        self._running = running
        self._task = task
        self._expired = False
        self.expires = expires

    def expire(self) -> None:
        del self._running[self]
        self._expired = True
        self._task.cancel()

    def __enter__(self) -> None:
        self._running[self] = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._expired:
            del self._running[self]
        # Somebody else may have cancelled the task too (a server shutting down): then it stays cancelled.
        elif self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error
