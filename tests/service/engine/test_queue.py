"""Who is let in, who is served next, in which thread: mostly by a clock that only work moves on."""

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import pytest

from service.engine.admission import NEW_TIME_SHARE, SHORT_SECONDS, Pace, RequestContext
from service.engine.queue import Queue
from service.errors import Overloaded, TooSlow

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
    for module in ("engine.queue", "engine.admission"):
        monkeypatch.setattr(f"service.{module}.perf_counter", clock)
    return clock


@pytest.fixture
def queue(clock: Clock) -> Iterator[Queue]:
    queue = Queue(1, QUEUE, LIMIT, clock=clock)
    yield queue
    queue.close()


@dataclass
class Request:
    """Work that comes at a time, and what became of it."""

    at: float
    pieces: int
    name: str = ""
    caller: str = "one"
    ended: float = 0.0
    refused: Exception | None = None

    @property
    def own(self) -> float:
        return self.pieces * PIECE


class World:
    """A pool of one thread; each piece moves the clock on by what it takes, and others come meanwhile."""

    def __init__(self, queue: Queue, clock: Clock, slower: Callable[[], float] = lambda: 1.0) -> None:
        self.served: list[str] = []
        self._queue, self._clock, self._slower = queue, clock, slower
        self._lock = threading.Lock()

    async def run(self, requests: list[Request]) -> None:
        self._loop, start = asyncio.get_running_loop(), self._clock.now
        self._coming = deque(sorted(requests, key=lambda each: each.at))
        for each in requests:
            each.at += start
        self._tasks: list[asyncio.Task[None]] = []
        while self._coming or any(not task.done() for task in self._tasks):
            if self._coming and not self._queue.admissions:
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
        context = RequestContext(request.caller)
        if self._queue.admissions._max_seconds == LIMIT:
            context.deadline = request.at + LIMIT
        try:
            await self._queue.run_all(context, [(PIECE, partial(self._work, request.name))] * request.pieces)
        except (Overloaded, TooSlow) as error:
            request.refused = error
        self._queue.release(context)
        request.ended = self._clock.now

    def _work(self, name: str) -> None:
        self.served.append(name)
        self._go_on(PIECE * self._slower())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("load", [0.7, 3.0])
async def test_whoever_is_let_in_ends_in_time_and_the_threads_have_enough_to_do(
    queue, clock, seed: int, load: float
) -> None:
    rng = random.Random(seed)
    at, asked = 0.0, []
    for _ in range(150):
        pieces = rng.choice([1, 1, 1, 2, 2, 4, 8, 16, 40])
        at += rng.expovariate(load / (8.3 * PIECE))
        asked.append(Request(at, pieces))
    started = clock.now
    await World(queue, clock).run(asked)
    answered = [each for each in asked if each.refused is None]
    for each in answered:
        assert each.ended <= each.at + LIMIT
    done = sum(each.own for each in answered)
    if load > 1:
        assert len(answered) < len(asked)
        assert done >= 0.9 * (clock.now - started)
    else:
        assert len(answered) >= 0.8 * len(asked)
    assert {type(each.refused) for each in asked} <= {type(None), Overloaded}


@pytest.mark.parametrize(("connections", "slower"), [(24, 1.0), (24, 2.0), (200, 1.0)])
async def test_a_caller_with_many_connections_shuts_nobody_out(queue, clock, connections: int, slower: float) -> None:
    """Each of them asks again a second after its answer or refusal; somebody else asks for one thing at a time."""
    many = [Request(second + i / connections, 24, "many", "many") for second in range(60) for i in range(connections)]
    one = [Request(3.0 * slower * i, 24, "one", "another") for i in range(20)]
    await World(queue, clock, slower=lambda: slower).run([*many, *one])
    answered = [each for each in one if each.refused is None]
    assert len(answered) >= 0.9 * len(one)
    assert all(each.ended - each.at <= LIMIT for each in answered)
    # What the other one leaves is used.
    assert slower * sum(each.own for each in [*many, *one] if each.refused is None) >= 0.9 * 60


async def test_callers_share_equally_whatever_number_of_requests_they_have(queue, clock) -> None:
    busy = [Request(second + i / 10, 10, "busy", "busy") for second in range(40) for i in range(10)]
    calm = [Request(0.5 * i, 10, "calm", "calm") for i in range(80)]  # as much as there is, by itself
    await World(queue, clock).run([*busy, *calm])
    served = {
        name: sum(each.own for each in asked if each.refused is None) for name, asked in (("b", busy), ("c", calm))
    }
    assert served["c"] >= 0.8 * served["b"]


def test_a_later_stage_that_was_not_announced_takes_the_turn_of_a_newcomer(queue) -> None:
    """A caller with many requests of many small stages does not come before whoever else comes meanwhile."""
    admissions = queue.admissions
    many = [admissions.admit(RequestContext("many"), 0.01) for _ in range(24)]
    for _ in range(10):
        for each in many:
            admissions.done([(each, 0.01)], 0.01)
            admissions.admit(each.context, 0.01)
    other = admissions.admit(RequestContext("another"), 0.005)
    assert [each for each in many if each.turn < other.turn] == []


def test_a_later_stage_that_was_announced_keeps_its_turn(queue) -> None:
    one = queue.admissions.admit(context := RequestContext("one"), 0.01, total_seconds=0.5)
    turn = one.turn
    queue.admissions.done([(one, 0.01)], 0.01)
    queue.admissions.admit(RequestContext("one"), 0.4)
    assert queue.admissions.admit(context, 0.49).turn == pytest.approx(turn)


def test_work_that_follows_counts_for_the_turn_and_beside_others_and_is_too_slow_for_nobody(queue) -> None:
    admissions = queue.admissions
    with (context := RequestContext("one")).before(1000.0):  # as much as is possible counts
        one = admissions.admit(context, 0.1)
    assert one.left == context.expected == pytest.approx(admissions.possible(context))
    assert one.turn > admissions.admit(RequestContext("another"), 0.1).turn
    with (late := RequestContext("one")).before(3.0), pytest.raises(Overloaded):
        admissions.admit(late, 0.1)
    assert len(admissions) == 2


async def test_a_request_of_many_stages_gets_its_share_beside_newcomers(queue, clock) -> None:
    world = World(queue, clock)
    staged = Request(0.0, 20, "staged", "one")
    others = [Request(0.01 + i * PIECE, 1, "other", "another") for i in range(100)]
    whole = world._ask

    async def ask(request: Request) -> None:
        context = RequestContext(request.caller)
        for _ in range(request.pieces):
            await queue.run(context, PIECE, partial(world._work, request.name))
        queue.release(context)

    world._ask = lambda request: ask(request) if request is staged else whole(request)  # type: ignore[method-assign]
    await world.run([staged, *others])
    assert max(i for i, name in enumerate(world.served) if name == "staged") < 2.5 * staged.pieces


async def test_who_has_little_there_is_let_in_though_much_of_another_caller_will_be_late(queue, clock) -> None:
    """Which is dropped as soon as that is known: its caller asked for more than his share of the time."""
    large = Request(0.0, 70, "large", "one")
    others = [Request(1.0 + 2 * i, 10, "other", "another") for i in range(4)]
    await World(queue, clock, slower=lambda: 2.0).run([large, *others])
    assert [each.refused for each in others] == [None] * 4
    assert isinstance(large.refused, Overloaded)
    assert large.ended < large.at + LIMIT


async def test_what_brings_little_comes_before_what_brings_much_which_ends_all_the_same(queue, clock) -> None:
    """A large one takes three seconds, a small one a twentieth; small ones come all the time."""
    large = Request(0.0, 60, "large")
    small = [Request(0.01 + i * PIECE, 1, "small") for i in range(400)]
    world = World(queue, clock)
    await world.run([large, *small])
    assert large.refused is None
    assert large.ended <= large.at + LIMIT
    # The first small ones never wait for more than what has begun, and the large one is served before they end.
    assert world.served[1:20] == ["small"] * 19
    assert max(i for i, name in enumerate(world.served) if name == "large") < len(world.served) - 100


async def test_what_a_slower_machine_cannot_end_in_time_is_refused_with_what_it_can(queue, clock) -> None:
    """The first request finds it out; the next one is told at once, by the pace of the last seconds."""
    first, second = Request(0.0, 20), Request(0.0, 100)
    world = World(queue, clock, slower=lambda: 4.0)
    await world.run([first])
    assert first.refused is None
    await world.run([second])
    assert isinstance(second.refused, TooSlow)
    assert len(world.served) == 20  # none of the second one's
    error = second.refused.of("candidates", 100)
    fitting = error.limit or 0
    assert NEW_TIME_SHARE * LIMIT / 2 <= fitting * PIECE * 4.0 <= LIMIT
    third = Request(0.0, fitting)
    await world.run([third])
    assert third.refused is None


async def test_what_cannot_end_in_time_any_more_ends_at_once(queue, clock) -> None:
    """The machine becomes ten times slower when it has begun: nothing is gained by the rest of its work."""
    dropped: list[int] = []
    queue._on_drop = lambda: dropped.append(1)
    request = Request(0.0, 70)
    world = World(queue, clock, slower=lambda: 10.0)
    await world.run([request])
    assert isinstance(request.refused, Overloaded)  # not a 413: alone on the machine as it was, it would end in time
    assert "others" not in request.refused.message
    named = request.refused.of("items", 70).limit
    assert named is not None
    assert 0 < named < 70
    assert len(world.served) < 10
    assert dropped == [1]
    assert len(queue.admissions) == 0


def test_the_number_that_fits_is_less_than_what_was_sent(queue, clock) -> None:
    """Whichever of two estimates is larger."""
    for seconds, surely in product([0.5 * n for n in range(1, 40)], repeat=2):
        context = RequestContext("one", clock.now + LIMIT)
        error = queue.admissions.too_slow(context, seconds, surely)
        assert error is None or 0 < (error.of("claims", 90).limit or 0) < 90
        assert (error is None) == (min(seconds, surely) <= queue.admissions.possible(context))


def test_what_came_on_too_slowly_is_told_how_much_would_fit_if_nobody_else_is_there(queue, clock) -> None:
    admissions = queue.admissions
    for others in (False, True):
        context = RequestContext("one", clock.now + LIMIT)
        admission = admissions.admit(context, 3.0)
        other = RequestContext("other", clock.now + LIMIT)
        if others:
            admissions.admit(other, 0.5)
        admissions.done([(admission, 0.5)], 0.5)
        clock.now += LIMIT - 1.0
        with pytest.raises(Overloaded) as refused:
            admissions.admit(context, 2.5)
        assert "others" not in str(refused.value)
        assert (refused.value.of("items", 100).limit is None) == others
        admissions.leave(context)
        admissions.leave(other)


def test_a_pace_of_long_ago_says_nothing(clock) -> None:
    pace = Pace(clock)
    assert (pace.recent, pace.cautious) == (1.0, 2.0)
    for _ in range(100):
        clock.now += 0.3
        pace.record(0.1, 0.3)
    assert pace.recent == pytest.approx(3.0, rel=0.15)
    assert pace.cautious == pytest.approx(pace.recent, rel=0.1)
    clock.now += 60
    assert pace.recent == pytest.approx(1.0, abs=0.01)
    assert pace.cautious == pytest.approx(2.0, abs=0.01)


async def test_a_refusal_says_how_much_would_be_let_in(queue) -> None:
    queue.admissions._max_queue_seconds = 100.0
    queue.admissions.admit(large := RequestContext("one"), 2.0)
    refusal = queue.admissions.refusal(RequestContext("another"), 3.0)
    assert refusal is not None
    # Eight seconds at twice the expected time: four of work, of which two are taken.
    told = refusal.of("pairs", 300)
    assert told.limit == int(0.9 * 300 * 2 / 3)
    assert told.field == "pairs"
    assert str(told.limit) in told.message
    assert queue.admissions.refusal(RequestContext("another"), 1.9) is None
    assert queue.admissions.refusal(RequestContext("another"), SHORT_SECONDS) is None
    queue.release(large)
    assert queue.admissions.refusal(RequestContext("another"), 3.0) is None


async def test_nothing_is_begun_for_a_caller_whose_time_is_over(queue, clock) -> None:
    """Even before the event loop has found the time to tell him."""
    context = RequestContext(deadline=clock.now + LIMIT)
    ran: list[int] = []
    waiting = asyncio.ensure_future(queue.run(context, PIECE, partial(ran.append, 1)))
    await asyncio.sleep(0)  # it is admitted, and queued
    assert len(queue.admissions) == 1
    clock.now += LIMIT + 1
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert ran == []
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    queue.release(context)
    assert len(queue.admissions) == 0


async def test_a_guess_that_was_too_high_holds_nobody_up_once_texts_are_read(clock) -> None:
    """Guessed a hundred times too long, it ends as by equal shares beside one that asks again and again."""
    queue = Queue(1, clock=clock)
    world = World(queue, clock)
    guessed = Request(0.0, 20, "guessed")
    others = [Request(0.01 + i * 4 * PIECE, 4, "other") for i in range(100)]
    whole = world._ask

    async def ask(request: Request) -> None:
        if request is guessed:
            context = RequestContext()
            await queue.run_all(context, [(PIECE, partial(world._work, "reading"))], total_seconds=100 * request.own)
            await queue.run_all(context, [(PIECE, partial(world._work, "guessed"))] * request.pieces)
            queue.release(context)
            request.ended = clock.now
        else:
            await whole(request)

    world._ask = ask  # type: ignore[method-assign]
    await world.run([guessed, *others])
    queue.close()
    last = max(i for i, name in enumerate(world.served) if name == "guessed")
    assert last < len(world.served) / 2


async def test_who_was_let_in_is_not_turned_away_half_way() -> None:
    queue = Queue(threads=1, max_queue_seconds=1.5)

    async def request() -> None:
        context = RequestContext()
        for _ in range(3):
            await queue.run(context, 1, lambda: time.sleep(0.03))
        queue.release(context)

    asked = [asyncio.create_task(request()) for _ in range(3)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), type(None), Overloaded]
    queue.close()
