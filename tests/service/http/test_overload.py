"""Too much work, over a socket: what is refused before it is read, who is made to wait, what is never begun."""

import asyncio
from pathlib import Path

import pytest

from service.http.connection import FEW_BYTES
from tests.harness.server import Gate, counted, pairs_of, post, serving
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
