import asyncio
import threading
import time
from functools import partial

import pytest

from service.errors import Overloaded
from service.workers import INLINE_SECONDS, Workers

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


async def test_a_request_given_up_is_rid_of_what_is_not_begun(workers: Workers) -> None:
    begun = []

    def piece(i: int) -> None:
        begun.append(i)
        time.sleep(0.05)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await workers.run_all(1, [partial(piece, i) for i in range(9)])
    await workers.run(1, int)
    assert begun == [0]
    assert workers.busy == 0


async def test_pieces_of_two_requests_take_turns(workers: Workers) -> None:
    order: list[str] = []

    def piece(name: str) -> None:
        time.sleep(0.01)
        order.append(name)

    await asyncio.gather(*(workers.run_all(1, [partial(piece, name)] * 4) for name in "ab"))
    assert order[:4] == ["a", "b", "a", "b"]
