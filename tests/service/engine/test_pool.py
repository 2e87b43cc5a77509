import asyncio
import threading
import time
from functools import partial

import pytest

from service.engine.pool import SHORT_SECONDS, Pool
from service.errors import Overloaded
from service.observe.metrics import TIMINGS, Timings

pytestmark = pytest.mark.anyio


async def test_no_more_work_waits_than_a_time_allows() -> None:
    pool = Pool(threads=1, max_queued_requests=99, max_queue_seconds=3)
    go_on = threading.Event()
    held = [asyncio.create_task(pool.run(2, partial(go_on.wait, 60))) for _ in range(2)]
    await asyncio.sleep(0)
    assert pool.queue_seconds == 4
    with pytest.raises(Overloaded) as caught:
        await pool.run(2, int)
    assert caught.value.headers == {"retry-after": "1", "retry-after-ms": "1000"}
    # What is small takes its turn among the large ones, and waits for no end of theirs.
    held.append(asyncio.create_task(pool.run(0.5, int)))
    await asyncio.sleep(0)
    assert pool.busy == 3
    go_on.set()
    await asyncio.gather(*held)
    assert pool.queue_seconds == 0
    assert await pool.run(100, int) == 0  # whatever it takes: nothing else waits
    pool.close()


async def test_short_work_does_not_wait_for_long_work() -> None:
    """All threads are busy with long pieces, and more of them wait; what is short is done meanwhile, one at a time."""
    pool = Pool(threads=2, max_queued_requests=99)
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
    assert not pool._short_runs
    pool.close()


async def test_pieces_of_a_request_begin_in_order() -> None:
    pool, begun = Pool(threads=1, max_queued_requests=99), list[int]()
    assert await pool.run_all([(1.0, partial(begun.append, n)) for n in range(5)]) == [None] * 5
    assert begun == [0, 1, 2, 3, 4]
    pool.close()


async def test_who_was_let_in_is_not_turned_away_half_way() -> None:
    pool = Pool(threads=1, max_queued_requests=1)

    async def request() -> None:
        TIMINGS.set(timings := Timings())
        for _ in range(3):
            await pool.run(1, lambda: time.sleep(0.03))
        pool.ended(timings)

    asked = [asyncio.create_task(request()) for _ in range(3)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), type(None), Overloaded]
    pool.close()
