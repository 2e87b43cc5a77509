"""The event loop's time, shared by caller.

Whatever is ready in one iteration of the loop runs in it, and everybody else waits as long: with answers from the
cache, hundreds of one caller's connections would be ready in each. So once an iteration has done some milliseconds of
requests' work, whoever comes waits, and as many steps of requests, from one await to the next, begin in each that
follows as usually take so long, or one. Where these take longer, the rest of them wait again, in front.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Generator
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from types import coroutine
from typing import Any, TypeVar

ITERATION_SECONDS = 0.004
_STEP_WEIGHT = 1 / 16  # of each step in the mean of their seconds

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Caller:
    """A caller with steps that wait, or with one that was just served; `seconds` order callers by what they used."""

    seconds: float
    steps: deque[asyncio.Future[None]] = field(default_factory=deque)


class LoopTime:
    """Decides which step of which request is next: of the caller who has used least, his oldest.

    A caller of whom nothing waits is forgotten, and comes back as one who has used as little as the last one served.
    """

    def __init__(self) -> None:
        """Start with nothing that waits."""
        self._spent = 0.0  # seconds of steps since the rest of the loop had its turn
        self._closed = False  # whether whoever comes has to wait
        self._callers: dict[str, _Caller] = {}
        self._least = 0.0  # seconds that the last one served had used
        self._usual = 0.0  # mean seconds of a step

    @coroutine
    def share(self, caller: str, work: Awaitable[T]) -> Generator[Any, Any, T]:
        """Do a caller's work, each step in its turn; what is cancelled goes on at once."""
        steps = work.__await__()
        awaited: tuple[Any, ...] = ()  # what the last step waits for
        thrown: BaseException | None = None
        while True:
            try:
                yield from awaited
                if self._closed:
                    yield from self._wait(caller)
                    while self._spent > ITERATION_SECONDS:  # those that began together with it took longer than usual
                        yield from self._wait(caller, first=True)
            except BaseException as error:
                thrown, awaited = error, ()  # which holds the error, whose traceback holds this frame
            began = perf_counter()
            try:
                awaited = (next(steps) if thrown is None else steps.throw(thrown),)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                thrown = None  # it would refer to this frame, which it refers to
                self._used(caller, perf_counter() - began)

    def _wait(self, caller: str, *, first: bool = False) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        steps = self._callers.setdefault(caller, _Caller(self._least)).steps
        if first:
            steps.appendleft(future)
        else:
            steps.append(future)
        return future

    def _used(self, caller: str, seconds: float) -> None:
        self._spent += seconds
        self._usual += _STEP_WEIGHT * (seconds - self._usual)
        if (known := self._callers.get(caller)) is not None:
            known.seconds += seconds
        if self._spent > ITERATION_SECONDS and not self._closed:
            self._closed = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Begin steps that wait in each iteration, until none does."""
        self._spent = 0.0
        # Whoever was served last has run by now, and is charged.
        self._callers = {name: each for name, each in self._callers.items() if each.steps}
        self._closed = bool(self._callers)
        if not self._closed:
            return
        callers = sorted(self._callers.values(), key=lambda each: each.seconds)
        self._least = callers[0].seconds
        steps = (each.steps.popleft() for each in callers for _ in range(len(each.steps)))
        most = max(1, int(ITERATION_SECONDS / self._usual))
        for future in islice((each for each in steps if not each.done()), most):  # the others were cancelled
            future.set_result(None)
        asyncio.get_running_loop().call_soon(self._next)  # behind them
