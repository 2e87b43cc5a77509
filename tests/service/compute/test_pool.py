import asyncio
import threading
import time
from functools import partial

import pytest

from service.compute.pool import INLINE_SECONDS, SHORT_SECONDS, Pool
from service.errors import Overloaded, TooSlow
from service.observe.timings import NO_REQUEST, TIMINGS, Timings

pytestmark = pytest.mark.anyio


@pytest.fixture
def pool():
    pool = Pool(threads=1, max_waiting=1)
    yield pool
    pool.close()


async def test_small_work_stays_and_large_work_goes(pool: Pool) -> None:
    here = threading.get_ident()
    assert await pool.run(INLINE_SECONDS, threading.get_ident) == here
    assert await pool.run(INLINE_SECONDS * 1.01, threading.get_ident) != here


@pytest.mark.parametrize("expected", [0, 1])
async def test_an_error_reaches_the_one_who_waits(pool: Pool, expected: float) -> None:
    with pytest.raises(ZeroDivisionError):
        await pool.run(expected, lambda: 1 / 0)
    assert pool.busy == 0
    assert pool.queue_seconds == 0


async def test_no_more_wait_than_may(pool: Pool) -> None:
    held = [asyncio.create_task(pool.run(1, lambda: time.sleep(0.1))) for _ in range(2)]
    await asyncio.sleep(0)
    assert pool.busy == 2
    with pytest.raises(Overloaded) as caught:
        await pool.run(1, int)
    assert caught.value.limit == 1
    assert await pool.run(0, int) == 0  # small work is still done
    await asyncio.gather(*held)
    assert await pool.run(1, int) == 0


async def test_no_more_work_waits_than_a_time_allows() -> None:
    pool = Pool(threads=1, max_waiting=99, max_queue_seconds=3)
    held = [asyncio.create_task(pool.run(2, lambda: time.sleep(0.05))) for _ in range(2)]
    await asyncio.sleep(0)
    assert pool.queue_seconds == 4
    with pytest.raises(Overloaded) as caught:
        await pool.run(2, int)
    assert caught.value.headers == {"retry-after": "1", "retry-after-ms": "1000"}
    # What is small takes its turn among the large ones, and waits for no end of theirs.
    held.append(asyncio.create_task(pool.run(0.5, lambda: time.sleep(0.01))))
    await asyncio.sleep(0)
    assert pool.busy == 3
    await asyncio.gather(*held)
    assert pool.queue_seconds == 0
    assert await pool.run(100, int) == 0  # whatever it takes: nothing else waits
    pool.close()


async def test_short_work_does_not_wait_for_long_work() -> None:
    """All threads are busy with long pieces, and more of them wait; what is short is done meanwhile, one at a time."""
    pool = Pool(threads=2, max_waiting=99)
    go_on = threading.Event()
    done: list[str] = []
    long = [asyncio.create_task(pool.run(1.0, partial(go_on.wait, 60))) for _ in range(4)]
    await asyncio.sleep(0.05)
    short = [asyncio.create_task(pool.run(SHORT_SECONDS, partial(done.append, str(i)))) for i in range(3)]
    await asyncio.wait_for(asyncio.gather(*short), 60)
    assert sorted(done) == ["0", "1", "2"]
    assert not any(each.done() for each in long)
    assert pool._running == 2
    go_on.set()
    await asyncio.gather(*long)
    assert pool._running == 0
    assert not pool._beside
    pool.close()


async def test_work_that_cannot_end_in_time_is_not_begun() -> None:
    """Alone on all threads; as a part of all that follows; or behind what is being done."""
    pool = Pool(threads=2, max_waiting=9, max_seconds=10)
    ran: list[float] = []

    async def request(seconds: float, share: float = 1.0) -> None:
        timings = Timings()
        timings.share = share
        TIMINGS.set(timings)
        try:
            await pool.run(seconds, lambda: ran.append(seconds))
        finally:
            pool.ended(timings, answered=True)

    with pytest.raises(TooSlow) as caught:
        await request(21)
    named = caught.value.of("pairs", 21)
    assert (named.field, named.limit) == ("pairs", 18)
    assert "18 at most" in named.message
    assert caught.value.limit is None  # others may have got the same error
    assert caught.value.of("pairs", 1).limit is None
    with pytest.raises(TooSlow):
        await request(5.5, share=0.25)
    await request(5.5, share=0.5)
    TIMINGS.set(NO_REQUEST)
    with pool.admitted(2.0):
        with pytest.raises(Overloaded, match="more than 10 seconds"):
            await request(19)
        await request(1)
    await request(19)  # alone it may
    assert ran == [5.5, 1, 19]
    pool.close()


async def test_who_was_let_in_is_not_turned_away_half_way(pool: Pool) -> None:
    async def request() -> None:
        TIMINGS.set(timings := Timings())
        for _ in range(3):
            await pool.run(1, lambda: time.sleep(0.03))
        pool.ended(timings, answered=True)

    asked = [asyncio.create_task(request()) for _ in range(3)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), type(None), Overloaded]


async def test_a_request_given_up_is_rid_of_what_is_not_begun(pool: Pool) -> None:
    begun = []
    given_up = threading.Event()

    def work(i: int) -> None:
        begun.append(i)
        given_up.wait(60)

    first = asyncio.create_task(pool.run(1, partial(work, 0)))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await pool.run(1, partial(work, 1))
    given_up.set()
    await first
    await pool.run(1, partial(work, 2))
    assert begun == [0, 2]
    assert pool.busy == 0


async def test_a_request_keeps_its_place_until_it_ends(pool: Pool) -> None:
    TIMINGS.set(timings := Timings())
    await pool.run_all([(1, int)], in_all=5)
    assert (pool.busy, pool.queue_seconds) == (1, 5)
    await pool.run(3, int)  # as announced
    assert pool.queue_seconds == 5
    await pool.run(2, int)  # more than announced
    assert pool.queue_seconds == 6
    pool.ended(timings, answered=False)
    assert (pool.busy, pool.queue_seconds) == (0, 0)
    await pool.run(1, int)  # for somebody else, who waits for the same
    assert pool.busy == 0


async def test_a_pace_slower_than_expected_lets_fewer_in() -> None:
    pool = Pool(threads=1, max_waiting=99, max_queue_seconds=0.35)

    async def many() -> int:
        asked = [pool.run(0.01, lambda: time.sleep(0.05)) for _ in range(40)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in outcomes} <= {type(None), Overloaded}
        return outcomes.count(None)

    first, *_, last = [await many() for _ in range(4)]
    assert first >= 35  # 0.01 s each, as expected
    assert last <= 20  # more likely 8: 0.05 s each, as it is
    assert pool.queue_seconds == 0
    pool.close()
