"""What callers make a process hold: bodies and unread answers, bounded in bytes and shared out by caller."""

import asyncio
import gc
import json
import socket
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from uvicorn.protocols.http import httptools_impl

from service.app import Application
from service.http.connection import Connection
from service.process.config import KEEP_ALIVE_SECONDS
from service.routes.routing import BodyLimits, parse
from tests.harness.process import BODY, question
from tests.harness.server import MB, post, serving
from tests.harness.service import until

pytestmark = pytest.mark.anyio
THEIRS, MINE = "127.0.0.2", "127.0.0.1"
LIMIT = 2 * MB


@contextmanager
def connected(address: tuple[str, int], number: int) -> Iterator[list[socket.socket]]:
    """Connections of somebody else, who reads nothing."""
    connections = []
    try:
        for _ in range(number):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.bind((THEIRS, 0))
            connection.setblocking(False)
            connections.append(connection)
        yield connections
    finally:
        for connection in connections:
            connection.close()


def refused(app: Application) -> float:
    labels = {"route": "/embed", "status": "429"}
    return app.service.telemetry.registry.get_sample_value("semblance_requests_total", labels) or 0.0


ANSWER = post({"sentences": [f"a dog {i}" for i in range(2000)]}, "/embed")  # some 170 KB
ATTACKS = {
    "bodies without their ends": b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: 70000\r\n\r\n" + b" " * 60_000,
    "answers that are not read": ANSWER * 3,
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_one_address_fills_no_memory_and_takes_no_room_of_others(
    models: Path, attack: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """More connections than requests may be in flight, each with tens of kilobytes."""
    monkeypatch.setattr("service.http.admission.BUFFERED_BYTES_PER_REQUEST", LIMIT // 50)
    most = {"max_body_bytes": 100_000, "max_in_flight": 50}
    async with serving(models, **most) as (app, address):
        loop = asyncio.get_running_loop()
        held = app.scoring.buffered
        largest = 0
        with connected(address, 100) as connections:
            for connection in connections:
                await loop.sock_connect(connection, address)
                try:
                    async with asyncio.timeout(0.05):
                        await loop.sock_sendall(connection, ATTACKS[attack])
                except (OSError, TimeoutError):
                    pass
                await asyncio.sleep(0.005)
                largest = max(largest, held.bytes)
            assert LIMIT / 4 < largest <= LIMIT / 2  # the rest is for others
            incoming, out = await asyncio.open_connection(*address, local_addr=(MINE, 0))
            whole = post(BODY, spaces=50_000)
            out.write(whole[:-10])
            await asyncio.sleep(0.05)
            out.write(whole[-10:])
            assert (await incoming.readline()).startswith(b"HTTP/1.1 200")
            out.close()
        await until(lambda: held.bytes == 0, "nothing is held of who has left")
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


OBJECTS = {
    "objects": ["{}", '{"": 1}', '{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}'],
    "other keys each": ['{"%06d": "%06d"}', '{"%06d": {"%06d": 1.5}}'],
    "lists": ["[]", "[1.5]"],
    "texts": ['"%06d"', "1.5", '"é%06d"'],
}


@pytest.mark.parametrize("each", [each for kind in OBJECTS.values() for each in kind])
async def test_what_a_body_is_parsed_to_is_held_before_it_is_parsed(
    models: Path, each: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = 0

    def noted(body: bytes, limits: BodyLimits) -> object:
        nonlocal held
        held = app.scoring.buffered.bytes
        return parse(body, limits)

    monkeypatch.setattr("service.routes.routing.parse", noted)
    items = (each.replace("%06d", f"{i:06}") for i in range(20_000))
    body = f'{{"query": "a", "documents": ["b"], "z": [{",".join(items)}]}}'.encode()
    head = b"POST /v1/rerank HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with serving(models) as (app, address):
        incoming, out = await asyncio.open_connection(*address)
        out.write(head + body)
        assert (await incoming.readline()).startswith(b"HTTP/1.1 200")
        out.close()
        tracemalloc.start()
        try:
            parsed = parse(body, BodyLimits(10**6, 10**6))
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert parsed
        assert used + len(body) <= held
        await until(lambda: app.scoring.buffered.bytes == 0, "nothing is held of what is answered")


async def test_an_answer_that_began_comes_whole_however_many_others_are_asked(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty, of which each is read slowly but steadily: what there is no room for is refused before it begins."""
    monkeypatch.setattr("service.http.admission.BUFFERED_BYTES_PER_REQUEST", 8 * LIMIT // 50)
    async with serving(models, max_body_bytes=100_000, max_in_flight=50) as (_, address):

        async def ask() -> tuple[str, bool]:
            incoming, out = await asyncio.open_connection(*address, limit=4096)
            out.write(ANSWER)
            status = (await incoming.readline()).split()[1].decode()
            head = await incoming.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            got = 0
            while piece := await incoming.read(min(4096, length - got)):
                got += len(piece)
                await asyncio.sleep(0.02)
            out.close()
            return status, got == length

        answers = await asyncio.gather(*(ask() for _ in range(30)))
    assert set(answers) == {("200", True), ("429", True)}


@pytest.mark.parametrize("path", ["/static-offline-docs/swagger-ui-bundle.js", "/openapi.json", "/models?full"])
async def test_what_all_are_answered_alike_is_held_once(models: Path, path: str) -> None:
    """However many do not read it."""
    asks = b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % path.encode()
    async with serving(models) as (_, address):
        loop = asyncio.get_running_loop()

        async def ask(connections: list[socket.socket]) -> int:
            for connection in connections:
                await loop.sock_connect(connection, address)
                await loop.sock_sendall(connection, asks)
                assert (await loop.sock_recv(connection, 9)) == b"HTTP/1.1 "
            return tracemalloc.get_traced_memory()[0]

        with connected(address, 60) as connections:
            tracemalloc.start()
            try:
                before = await ask(connections[:10])
                after = await ask(connections[10:])
            finally:
                tracemalloc.stop()
        assert (after - before) / 50 < 16_384


async def test_bodies_of_requests_that_are_given_up_do_not_wait_for_the_garbage_collector(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.http.admission.BUFFERED_BYTES_PER_REQUEST", LIMIT // 1024)
    async with serving(models, max_body_bytes=100_000, max_in_flight=1024) as (app, address):
        gc.disable()
        tracemalloc.start()
        try:
            with connected(address, 100) as connections:
                for connection in connections:
                    await asyncio.get_running_loop().sock_connect(connection, address)
                    await asyncio.get_running_loop().sock_sendall(connection, ATTACKS["bodies without their ends"])
                await until(lambda: refused(app) >= 60, "most of 6 MB had to go")
                bodies = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, httptools_impl.__file__)])
        finally:
            tracemalloc.stop()
            gc.enable()
    assert LIMIT / 4 < sum(each.size for each in bodies.statistics("filename")) < LIMIT


@pytest.mark.parametrize("end", ["the server closes", "the client resets"])
async def test_connections_that_have_closed_do_not_wait_for_the_garbage_collector(models: Path, end: str) -> None:
    def alive() -> int:
        return sum(isinstance(each, Connection) for each in gc.get_objects())

    async with serving(models) as (_, address):
        gc.collect()
        gc.disable()
        try:
            before = alive()
            for _ in range(5):
                incoming, out = await asyncio.open_connection(*address)
                out.write(question(close=end == "the server closes"))
                if end == "the server closes":
                    assert (await incoming.read()).startswith(b"HTTP/1.1 200")  # until it is closed
                    out.close()
                else:
                    assert (await incoming.readline()).startswith(b"HTTP/1.1 200")
                    out.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                    out.transport.abort()
            async with asyncio.timeout(KEEP_ALIVE_SECONDS / 2):  # when one that is idle would be closed
                await until(lambda: alive() <= before, "all are freed")
        finally:
            gc.enable()


async def test_a_body_in_very_small_pieces_is_refused(models: Path) -> None:
    """Each piece costs a call: 4 MB of them would keep the event loop for seconds."""
    async with serving(models) as (_, address):
        incoming, out = await asyncio.open_connection(*address)
        out.write(b"POST /similarity HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        out.write(b"1\r\na\r\n" * 100_000)
        assert (await incoming.readline()).startswith(b"HTTP/1.1 400")
        out.close()
        incoming, out = await asyncio.open_connection(*address)
        body = json.dumps(BODY).encode()
        pieces = b"".join(b"1\r\n%c\r\n" % each for each in b" " * 200 + body)
        out.write(b"POST /similarity HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        out.write(pieces + b"0\r\n\r\n")
        assert (await incoming.readline()).startswith(b"HTTP/1.1 200")
        out.close()
