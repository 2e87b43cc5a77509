import asyncio
import time

import pytest

from service.time_limit import TimeLimits

pytestmark = pytest.mark.anyio


async def test_what_takes_too_long_is_ended() -> None:
    started = time.perf_counter()
    with pytest.raises(TimeoutError), TimeLimits(0.02).begin():
        await asyncio.sleep(1)
    assert time.perf_counter() - started < 0.5
    await asyncio.sleep(0)  # the task goes on as if nothing had been


async def test_what_is_in_time_is_left_alone() -> None:
    with TimeLimits(0.02).begin():
        await asyncio.sleep(0)
    await asyncio.sleep(0.04)


async def test_an_error_passes_as_it_is() -> None:
    with pytest.raises(KeyError), TimeLimits(0.02).begin():
        raise KeyError
    await asyncio.sleep(0.04)


async def test_a_task_cancelled_from_outside_stays_cancelled() -> None:
    async def work() -> None:
        with TimeLimits(60).begin():
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_inside_another_limit_the_first_to_expire_counts() -> None:
    async def inner() -> None:
        with TimeLimits(0.02).begin():
            await asyncio.sleep(60)

    async def outer() -> None:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(60)

    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError):
            await inner()
    with pytest.raises(TimeoutError), TimeLimits(60).begin():
        await outer()


async def test_one_timer_serves_all_and_each_expires_in_its_turn() -> None:
    limits = TimeLimits(0.05)
    ended: dict[str, float] = {}

    async def work(name: str, begins: float, seconds: float) -> None:
        await asyncio.sleep(begins)
        started = time.perf_counter()
        try:
            with limits.begin():
                await asyncio.sleep(seconds)
        except TimeoutError:
            ended[name] = time.perf_counter() - started

    await asyncio.gather(work("first", 0, 1), work("short", 0, 0), work("second", 0.03, 1), work("late", 0.12, 1))
    assert set(ended) == {"first", "second", "late"}
    assert all(0.045 < seconds < 0.5 for seconds in ended.values())
    assert limits._running == {}


def test_another_event_loop_has_a_timer_of_its_own() -> None:
    limits = TimeLimits(0.02)

    async def work() -> None:
        with limits.begin():
            await asyncio.sleep(1)

    for _ in range(2):
        with pytest.raises(TimeoutError):
            asyncio.run(work())
