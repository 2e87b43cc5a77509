import asyncio
import threading
import time

import pytest

from service.errors import Overloaded, TookTooLong
from service.workers import DEADLINE, INLINE_SECONDS, Workers

pytestmark = pytest.mark.anyio


@pytest.fixture
def workers():
    workers = Workers(threads=1, max_waiting=1)
    yield workers
    workers.close()


async def test_small_work_stays_and_large_work_goes(workers: Workers) -> None:
    here = threading.get_ident()
    assert await workers.run(INLINE_SECONDS, threading.get_ident) == here
    assert await workers.run(INLINE_SECONDS * 1.01, threading.get_ident) != here


async def test_an_error_reaches_the_one_who_waits(workers: Workers) -> None:
    with pytest.raises(ZeroDivisionError):
        await workers.run(1, lambda: 1 / 0)
    assert workers.busy == 0


async def test_no_more_wait_than_may(workers: Workers) -> None:
    held = [asyncio.create_task(workers.run(1, lambda: time.sleep(0.1))) for _ in range(2)]
    await asyncio.sleep(0)
    assert workers.busy == 2
    with pytest.raises(Overloaded) as caught:
        await workers.run(1, int)
    assert caught.value.limit == 1
    assert await workers.run(0, int) == 0  # small work is still done
    await asyncio.gather(*held)
    assert await workers.run(1, int) == 0


async def test_a_deadline_is_kept(workers: Workers) -> None:
    DEADLINE.set(time.perf_counter() + 0.02)
    started = time.perf_counter()
    with pytest.raises(TookTooLong):
        await workers.run(1, lambda: time.sleep(0.2))
    assert time.perf_counter() - started < 0.15
    assert workers.busy == 0
