"""Who is let in, and who is served next: by a clock that only work moves on."""

import asyncio
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from service.engine.concurrency import PATIENCE, SHORT_SECONDS, SURE, Pace
from service.engine.pool import Pool
from service.errors import Overloaded, TooSlow
from service.observe.metrics import TIMINGS, Timings

pytestmark = pytest.mark.anyio
PIECE = 0.05  # seconds: more than what has a thread of its own
QUEUE, LIMIT = 2.0, 10.0


class Clock:
    """Time that tests move on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in ("engine.pool", "observe.metrics"):
        monkeypatch.setattr(f"service.{module}.perf_counter", clock)
    return clock


@pytest.fixture
def pool(clock: Clock) -> Iterator[Pool]:
    pool = Pool(1, 1000, QUEUE, LIMIT, clock=clock)
    yield pool
    pool.close()


@dataclass
class Request:
    """Work that comes at a time, and what became of it."""

    at: float
    pieces: int
    name: str = ""
    ended: float = 0.0
    refused: Exception | None = None

    @property
    def own(self) -> float:
        return self.pieces * PIECE

    @property
    def waited(self) -> float:
        return self.ended - self.at - self.own


class World:
    """A pool of one thread; each piece moves the clock on by what it takes, and others come meanwhile."""

    def __init__(self, pool: Pool, clock: Clock, slower: Callable[[], float] = lambda: 1.0) -> None:
        self.served: list[str] = []
        self._pool, self._clock, self._slower = pool, clock, slower
        self._lock = threading.Lock()

    async def run(self, requests: list[Request]) -> None:
        self._loop, start = asyncio.get_running_loop(), self._clock.now
        self._coming = deque(sorted(requests, key=lambda each: each.at))
        for each in requests:
            each.at += start
        self._tasks: list[asyncio.Task[None]] = []
        while self._coming or any(not task.done() for task in self._tasks):
            if self._coming and not self._pool.busy:
                self._go_on(max(0.0, self._coming[0].at - self._clock.now))
            await asyncio.sleep(0.0005)
        await asyncio.gather(*self._tasks)

    def _go_on(self, seconds: float) -> None:
        with self._lock:
            self._clock.now += seconds
            while self._coming and self._coming[0].at <= self._clock.now:
                self._loop.call_soon_threadsafe(self._begin, self._coming.popleft())

    def _begin(self, request: Request) -> None:
        self._tasks.append(self._loop.create_task(self._ask(request)))

    async def _ask(self, request: Request) -> None:
        timings = Timings()
        if self._pool._limit._max_seconds == LIMIT:
            timings.until = request.at + LIMIT
        TIMINGS.set(timings)
        try:
            await self._pool.run_all([(PIECE, partial(self._work, request.name))] * request.pieces)
        except (Overloaded, TooSlow) as error:
            request.refused = error
        self._pool.ended(timings)
        request.ended = self._clock.now

    def _work(self, name: str) -> None:
        self.served.append(name)
        self._go_on(PIECE * self._slower())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("load", [0.7, 3.0])
async def test_nobody_waits_longer_than_eight_times_his_own_work(pool, clock, seed: int, load: float) -> None:
    """And whoever is let in ends in time; what is refused leaves the thread enough to do."""
    rng = random.Random(seed)
    at, asked = 0.0, []
    for _ in range(150):
        pieces = rng.choice([1, 1, 1, 2, 2, 4, 8, 16, 40])
        at += rng.expovariate(load / (8.3 * PIECE))
        asked.append(Request(at, pieces))
    started = clock.now
    await World(pool, clock).run(asked)
    answered = [each for each in asked if each.refused is None]
    for each in answered:
        assert each.ended <= each.at + LIMIT
        assert each.waited <= max(PATIENCE * each.own, QUEUE) + PIECE
    done = sum(each.own for each in answered)
    if load > 1:
        assert len(answered) < len(asked)
        assert done >= 0.9 * (clock.now - started)
    else:
        assert len(answered) >= 0.8 * len(asked)
    assert {type(each.refused) for each in asked} <= {type(None), Overloaded}


@pytest.mark.parametrize("seed", range(3))
async def test_nobody_ends_later_than_by_equal_shares(clock, seed: int) -> None:
    """Of any load: this is what the order promises where nobody is refused."""
    rng = random.Random(seed)
    at, asked = 0.0, []
    for _ in range(80):
        at += rng.expovariate(1.2 / (8.3 * PIECE))
        asked.append(Request(at, rng.choice([1, 1, 1, 2, 2, 4, 8, 16, 40])))
    shared = ends_by_equal_shares([(each.at, each.own) for each in asked])
    start = clock.now
    pool = Pool(1, 1000, clock=clock)
    await World(pool, clock).run(asked)
    pool.close()
    for each, end in zip(asked, shared, strict=True):
        assert each.ended - start <= end + PIECE + 1e-6
    waited = sum(each.ended - each.at for each in asked)
    assert waited < sum(end - (each.at - start) for each, end in zip(asked, shared, strict=True))


def ends_by_equal_shares(asked: list[tuple[float, float]]) -> list[float]:
    """When each would end, of (time at which it comes, seconds that it takes) in the order of times."""
    ends, left, now = [0.0] * len(asked), dict[int, float](), 0.0
    coming = deque(enumerate(asked))
    while coming or left:
        until = coming[0][1][0] if coming else float("inf")
        first = min(left.values()) * len(left) if left else float("inf")
        step = min(first, until - now)
        left = {i: rest - step / len(left) for i, rest in left.items()}
        now += step
        for i in [i for i, rest in left.items() if rest <= 1e-9]:
            ends[i] = now
            del left[i]
        while coming and coming[0][1][0] <= now:
            i, (_, seconds) = coming.popleft()
            left[i] = seconds
    return ends


async def test_what_brings_little_comes_before_what_brings_much_which_ends_all_the_same(pool, clock) -> None:
    """A large one takes three seconds, a small one a twentieth; small ones come all the time."""
    large = Request(0.0, 60, "large")
    small = [Request(0.01 + i * PIECE, 1, "small") for i in range(400)]
    world = World(pool, clock)
    await world.run([large, *small])
    assert large.refused is None
    assert large.ended <= large.at + LIMIT
    # The first small ones never wait for more than what has begun, and the large one is served before they end.
    assert world.served[1:20] == ["small"] * 19
    assert max(i for i, name in enumerate(world.served) if name == "large") < len(world.served) - 100


async def test_what_a_slower_machine_cannot_end_in_time_is_refused_with_what_it_can(pool, clock) -> None:
    """The first request finds it out; the next one is told at once, by the pace of the last seconds."""
    first, second = Request(0.0, 20), Request(0.0, 100)
    world = World(pool, clock, slower=lambda: 4.0)
    await world.run([first])
    assert first.refused is None
    await world.run([second])
    assert isinstance(second.refused, TooSlow)
    assert len(world.served) == 20  # none of the second one's
    error = second.refused.of("candidates", 100)
    fitting = error.limit or 0
    assert SURE * LIMIT / 2 <= fitting * PIECE * 4.0 <= LIMIT
    third = Request(0.0, fitting)
    await world.run([third])
    assert third.refused is None


async def test_what_cannot_end_in_time_any_more_ends_at_once(pool, clock) -> None:
    """The machine becomes ten times slower when it has begun: nothing is gained by the rest of its work."""
    dropped: list[int] = []
    pool._dropped = lambda: dropped.append(1)
    request = Request(0.0, 70)
    world = World(pool, clock, slower=lambda: 10.0)
    await world.run([request])
    assert isinstance(request.refused, Overloaded)  # not a 413: alone on the machine as it was, it would end in time
    assert request.refused.limit is None
    assert len(world.served) < 10
    assert dropped == [1]
    assert pool.busy == 0


async def test_who_would_be_late_in_his_turn_is_told_as_soon_as_it_is_known(pool, clock) -> None:
    """Each would end in time alone; the second one waits for the first, on a machine that is five times slower now."""
    first, second = Request(0.0, 30), Request(0.0, 30)
    world = World(pool, clock, slower=lambda: 5.0)
    await world.run([first, second])
    assert first.refused is None
    assert first.ended <= first.at + LIMIT
    assert isinstance(second.refused, Overloaded)
    assert second.ended < second.at + LIMIT / 4
    assert second.refused.seconds > LIMIT / 4  # until the first one ends
    assert len(world.served) == 30  # none of the second one's
    assert pool.busy == 0


async def test_the_last_piece_has_one_thread(clock) -> None:
    """Half a second is left, in which two threads could do it and one cannot."""
    pool = Pool(2, 10, QUEUE, LIMIT, clock=clock)
    timings = Timings()
    TIMINGS.set(timings)
    with pool.admitted(PIECE) as admission:
        for _ in range(100):
            pool._pace.ran(PIECE, 12 * PIECE)
        timings.until = clock.now + 0.5
        pool._limit.give_up([admission])
        assert isinstance(admission.failure, Overloaded)
    pool.ended(timings)
    pool.close()


def test_a_pace_of_long_ago_says_nothing(clock) -> None:
    pace = Pace(clock)
    assert (pace.recent, pace.cautious) == (1.0, 2.0)
    for _ in range(100):
        clock.now += 0.3
        pace.ran(0.1, 0.3)
    assert pace.recent == pytest.approx(3.0, rel=0.15)
    assert pace.cautious == pytest.approx(pace.recent, rel=0.1)
    clock.now += 60
    assert pace.recent == pytest.approx(1.0, abs=0.01)
    assert pace.cautious == pytest.approx(2.0, abs=0.01)


async def test_a_refusal_says_how_much_would_be_let_in(pool, clock) -> None:
    pool._limit._max_queue_seconds = 100.0
    with pool.admitted(2.0):
        refusal = pool.refusal(Timings(), 3.0)
        assert refusal is not None
        # Eight seconds at twice the expected time: four of work, of which two are taken.
        told = refusal.of("pairs", 300)
        assert told.limit == int(0.9 * 300 * 2 / 3)
        assert told.field == "pairs"
        assert str(told.limit) in told.message
        assert pool.refusal(Timings(), 1.9) is None
        assert pool.refusal(Timings(), SHORT_SECONDS) is None
    assert pool.refusal(Timings(), 3.0) is None


async def test_nothing_is_begun_for_a_caller_whose_time_is_over(pool, clock) -> None:
    """Even before the event loop has found the time to tell him."""
    timings = Timings()
    timings.until = clock.now + LIMIT
    TIMINGS.set(timings)
    ran: list[int] = []
    waiting = asyncio.ensure_future(pool.run(PIECE, partial(ran.append, 1)))
    await asyncio.sleep(0)  # it is admitted, and queued
    assert pool.busy == 1
    clock.now += LIMIT + 1
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert ran == []
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    pool.ended(timings)
    assert pool.busy == 0


async def test_a_guess_that_was_too_high_holds_nobody_up_once_texts_are_read(clock) -> None:
    """Guessed a hundred times too long, it ends as by equal shares beside one that asks again and again."""
    pool = Pool(1, 1000, clock=clock)
    world = World(pool, clock)
    guessed = Request(0.0, 20, "guessed")
    others = [Request(0.01 + i * 4 * PIECE, 4, "other") for i in range(100)]
    whole = world._ask

    async def ask(request: Request) -> None:
        if request is guessed:
            TIMINGS.set(timings := Timings())
            await pool.run_all([(PIECE, partial(world._work, "reading"))], in_all=100 * request.own)
            await pool.run_all([(PIECE, partial(world._work, "guessed"))] * request.pieces)
            pool.ended(timings)
            request.ended = clock.now
        else:
            await whole(request)

    world._ask = ask  # type: ignore[method-assign]
    await world.run([guessed, *others])
    pool.close()
    last = max(i for i, name in enumerate(world.served) if name == "guessed")
    assert last < len(world.served) / 2
