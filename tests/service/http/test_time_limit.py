import asyncio

import pytest

from service.http.time_limit import ClientLeft, TimeLimit

pytestmark = pytest.mark.anyio


async def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError), TimeLimit(0.02):
        await asyncio.sleep(60)
    await asyncio.sleep(0)  # the task goes on as if nothing had been


async def test_what_is_in_time_is_left_alone() -> None:
    with TimeLimit(60):
        await asyncio.sleep(0)
    with TimeLimit(0.02):
        pass
    await asyncio.sleep(0.04)


async def test_a_task_cancelled_from_outside_stays_cancelled() -> None:
    async def work() -> None:
        with TimeLimit(60):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_inside_another_limit_the_first_to_expire_counts() -> None:
    async def inner() -> None:
        with TimeLimit(0.02):
            await asyncio.sleep(60)

    async def outer() -> None:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(60)

    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError):
            await inner()
    with pytest.raises(TimeoutError), TimeLimit(60):
        await outer()


async def test_a_client_that_leaves_ends_the_block() -> None:
    loop = asyncio.get_running_loop()

    async def work() -> None:
        with TimeLimit(60) as limit:
            loop.call_soon(limit.end, ClientLeft)
            loop.call_soon(limit.end, ClientLeft)  # told twice
            await asyncio.sleep(60)

    with pytest.raises(ClientLeft):
        await work()
    await asyncio.sleep(0)
