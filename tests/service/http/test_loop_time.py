"""The event loop's time, shared by caller: nobody waits for all that another has."""

import asyncio
import gc
import weakref
from pathlib import Path
from time import sleep

import pytest

from service.http import loop_time
from service.http.loop_time import LoopTime
from tests.harness.server import post, serving
from tests.harness.service import until

pytestmark = pytest.mark.anyio
HEALTH, PAGE, DOCS = (b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % path for path in (b"/health/live", b"/", b"/docs"))
LARGE, SMALL = (
    post({"model": "avg-sick", "sentences": [f"a dog {i}" for i in range(count)]}, "/embed") for count in (100, 2)
)


class Body:
    """What can be told to be gone."""


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step begins in an iteration, however short it is."""
    monkeypatch.setattr(loop_time, "ITERATION_SECONDS", 0.0)


@pytest.fixture
def time() -> LoopTime:
    return LoopTime()


async def steps(done: list[str], name: str, number: int = 3) -> str:
    for _ in range(number):
        done.append(name)
        await asyncio.sleep(0)
    return name


async def begun(time: LoopTime, done: list[str], name: str, requests: int) -> list[asyncio.Task[str]]:
    """Requests of a caller, whose steps wait but for the first."""
    tasks = [asyncio.create_task(time.share(name, steps(done, name))) for _ in range(requests)]
    await asyncio.sleep(0)
    assert len(done) == 1
    return tasks


async def test_the_rest_of_the_loop_has_a_turn_between_steps(time: LoopTime) -> None:
    done: list[str] = []
    tasks = await begun(time, done, "many", 20)
    while not all(task.done() for task in tasks):
        before = len(done)
        await asyncio.sleep(0)
        assert len(done) - before <= 1
    assert len(done) == 60


async def test_who_has_used_little_comes_before_who_has_hundreds_waiting(time: LoopTime) -> None:
    done: list[str] = []
    tasks = await begun(time, done, "many", 200)
    before = len(done)
    assert await time.share("few", steps(done, "few")) == "few"
    assert len(done) - before <= 12
    await asyncio.gather(*tasks)  # nor does anybody wait for ever
    assert done.count("many") == 600


async def test_steps_that_take_longer_than_usual_do_not_begin_together(
    time: LoopTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the mean of those before, many would."""
    monkeypatch.setattr(loop_time, "ITERATION_SECONDS", 0.005)
    done: list[str] = []

    async def heavy() -> None:
        for _ in range(2):
            sleep(0.01)
            done.append("heavy")
            await asyncio.sleep(0)

    await time.share("cheap", steps([], "cheap", 200))
    tasks = [asyncio.create_task(time.share("many", heavy())) for _ in range(10)]
    while not all(task.done() for task in tasks):
        before = len(done)
        await asyncio.sleep(0)
        assert len(done) - before <= 1
    assert len(done) == 20


async def test_who_is_cancelled_ends_at_once_and_delays_nobody(time: LoopTime) -> None:
    done: list[str] = []
    first, *others = await begun(time, done, "many", 50)
    for task in others:
        task.cancel()
    await asyncio.sleep(0)
    assert all(task.cancelled() for task in others)
    assert await first == "many"
    assert done == ["many"] * 3
    assert await time.share("few", steps(done, "few")) == "few"


async def test_what_work_raises_and_what_is_raised_in_it_pass(time: LoopTime) -> None:
    async def failing() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        raise LookupError

    with pytest.raises(LookupError):
        await time.share("a", failing())


async def test_what_fails_in_a_thread_keeps_nothing_until_the_garbage_is_collected(time: LoopTime) -> None:
    """As a body of megabytes that is no JSON."""
    kept: list[weakref.ref[Body]] = []

    def parse(body: Body) -> None:
        raise LookupError

    async def work() -> None:
        body = Body()
        kept.append(weakref.ref(body))
        await asyncio.to_thread(parse, body)

    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(LookupError):
                await time.share("a", work())
        await until(lambda: kept[0]() is kept[1]() is None, "it is freed")
    finally:
        gc.enable()


@pytest.mark.parametrize("asked", [LARGE, HEALTH, PAGE, DOCS], ids=["from the cache", "health", "page", "docs"])
async def test_small_requests_do_not_wait_for_hundreds_of_answers_without_work(models: Path, asked: bytes) -> None:
    async with serving(models, cache="memory") as (_, address):
        answered: list[str] = []

        async def connect(mine: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            incoming, out = await asyncio.open_connection(*address, local_addr=(mine, 0))
            await ask(incoming, out, HEALTH)
            return incoming, out

        async def ask(incoming: asyncio.StreamReader, out: asyncio.StreamWriter, request: bytes) -> None:
            out.write(request)
            head = await incoming.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            await incoming.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
            answered.append(out.get_extra_info("sockname")[0])

        many = [await connect("127.0.0.2") for _ in range(100)]
        few = await connect("127.0.0.1")
        await ask(*few, LARGE)
        await ask(*few, SMALL)
        answered.clear()
        tasks = [asyncio.create_task(ask(*each, asked)) for each in many]
        await asyncio.sleep(0)  # they have sent it
        await ask(*few, SMALL)
        await ask(*few, HEALTH)
        assert len(answered) <= 30
        await asyncio.gather(*tasks)
        for _, out in (*many, few):
            out.close()
