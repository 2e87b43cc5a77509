"""Too much work, over a socket: what is refused before it is read, who is made to wait, what is never begun."""

import asyncio
from pathlib import Path

import pytest

from service.app import Application
from service.http.admission import _MIN_COST_SAMPLES, _PROBE_EVERY
from service.http.connection import FEW_BYTES
from tests.harness.server import Address, Gate, counted, pairs_of, post, serving
from tests.harness.service import until

pytestmark = pytest.mark.anyio
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
# Long bodies, by what the models of their pairs cost.
DEAR = post(pairs_of("a dog"), spaces=2 * FEW_BYTES)
CHEAP = post(pairs_of("a dog") | {"model": "avg-paraphrase"}, spaces=2 * FEW_BYTES)
CROWDED = {"worker_threads": 1, "cache": "off", "max_queue_seconds": 0.01, "request_timeout": 1000}


def dropped(app) -> float:
    return app.service.telemetry.registry.get_sample_value("semblance_dropped_total") or 0.0


async def asked(connection: Connection, request: bytes) -> bytes:
    """The status line of the answer, whose rest is read too."""
    incoming, out = connection
    out.write(request)
    head = await incoming.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    await incoming.readexactly(next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")))
    return lines[0]


async def after_dear_requests(app: Application, address: Address, times: int) -> tuple[Gate, Connection]:
    """The gate of a dear model, by which the route has learnt what a long body means, and who asked it."""
    gate = Gate(app, "pair-sick")
    gate.open.set()
    connection = await asyncio.open_connection(*address)
    for _ in range(times):
        assert b" 200 " in await asked(connection, DEAR)
    return gate, connection


async def test_a_body_is_not_read_where_its_length_already_says_no(models: Path) -> None:
    async with serving(models, **CROWDED) as (app, address):
        gate, connection = await after_dear_requests(app, address, _MIN_COST_SAMPLES)
        gate.open.clear()
        connection[1].write(DEAR)
        await until(lambda: len(app.service.queue.admissions) == 1, "it runs")
        head, _, _ = DEAR.partition(b"\r\n\r\n")
        other = await asyncio.open_connection(*address)
        assert b" 429 " in await asked(other, head + b"\r\n\r\n")  # and none of its body
        # What is small may be cheap: it is read, and refused for what it is.
        third = await asyncio.open_connection(*address)
        assert b" 429 " in await asked(third, post(pairs_of("a man")))
        assert b" 200 " in await asked(third, post({"pairs": [{"a": "a man", "b": "a dog"}], "model": "avg-sick"}))
        gate.open.set()
        assert (await connection[0].readline()).startswith(b"HTTP/1.1 200")
        for _, out in (connection, other, third):
            out.close()


async def test_cheap_requests_of_a_route_keep_its_bodies_from_being_judged_by_their_length(models: Path) -> None:
    async with serving(models, **CROWDED) as (app, address):
        gate, connection = await after_dear_requests(app, address, _MIN_COST_SAMPLES - 1)
        assert b" 200 " in await asked(connection, CHEAP)
        gate.open.clear()
        connection[1].write(post(pairs_of("a dog")))
        await until(lambda: len(app.service.queue.admissions) == 1, "it runs")
        other = await asyncio.open_connection(*address)
        assert b" 200 " in await asked(other, CHEAP)
        gate.open.set()
        assert (await connection[0].readline()).startswith(b"HTTP/1.1 200")
        for _, out in (connection, other):
            out.close()


async def test_cheap_requests_are_let_in_again_where_dear_ones_took_all_the_room(models: Path) -> None:
    """A few in a row may be refused unread; one is read, is answered, and those after it too."""
    async with serving(models, **CROWDED) as (app, address):
        gate, connection = await after_dear_requests(app, address, 2 * _MIN_COST_SAMPLES)
        gate.open.clear()
        connection[1].write(post(pairs_of("a dog")))
        await until(lambda: len(app.service.queue.admissions) == 1, "it runs")
        answered = []
        for _ in range(2 * _PROBE_EVERY):
            other = await asyncio.open_connection(*address)
            answered.append(b" 200 " in await asked(other, CHEAP))
            other[1].close()
        first = answered.index(True)
        assert first < _PROBE_EVERY
        assert all(answered[first:])
        gate.open.set()
        assert (await connection[0].readline()).startswith(b"HTTP/1.1 200")
        connection[1].close()


async def test_who_asks_again_at_once_waits_for_the_next_refusal_and_nobody_else_does(models: Path) -> None:
    async with serving(models, max_in_flight=2, **CROWDED) as (app, address):
        gate = Gate(app, "pair-sick")
        first, again, newcomer = [await asyncio.open_connection(*address) for _ in range(3)]
        first[1].write(post(pairs_of("a dog")))
        await until(lambda: len(app.service.queue.admissions) == 1, "it runs")
        assert b" 429 " in await asked(again, post(pairs_of("a cat")))  # at once: it is told when to come
        refused = asyncio.create_task(asked(again, post(pairs_of("a cat"))))
        await until(lambda: app.scoring.delayed_refusals == 1, "it waits")
        assert b" 429 " in await asked(newcomer, post(pairs_of("a man")))
        # It takes nobody's place among the requests in flight, and what is cheap is answered.
        assert b" 200 " in await asked(newcomer, post(pairs_of("a man") | {"model": "avg-paraphrase"}))
        assert b" 429 " in await refused
        assert app.scoring.delayed_refusals == 0
        gate.open.set()
        assert (await first[0].readline()).startswith(b"HTTP/1.1 200")
        for _, out in (first, again, newcomer):
            out.close()


async def test_what_was_not_begun_in_time_is_never_begun_and_counted(models: Path) -> None:
    async with serving(models, worker_threads=1, cache="off", request_timeout=3) as (app, address):
        app.service.checks.close()  # whose runs would be counted too
        gate = Gate(app, "pair-sick")
        runs, waits = [await asyncio.open_connection(*address) for _ in range(2)]
        runs[1].write(post(pairs_of("a dog")))
        await until(lambda: len(app.service.queue.admissions) == 1, "it runs")
        assert b" 503 " in await asked(waits, post(pairs_of("a cat")))
        assert dropped(app) == 1
        assert (await runs[0].readline()).startswith(b"HTTP/1.1 503")
        await until(lambda: counted(app, 503) == 2, "both are counted")
        gate.open.set()
        await until(lambda: gate.ran == [1], "what had begun ends")
        assert b" 200 " in await asked(waits, post(pairs_of("a man")))
        assert gate.ran == [1, 1]
        assert dropped(app) == 1
        for _, out in (runs, waits):
            out.close()
