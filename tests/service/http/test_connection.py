"""Connections and the bytes on them: accepting, answers in one piece, idle ones."""

import asyncio
import gc
import json
import re
import socket
from contextlib import ExitStack
from pathlib import Path

import uvloop
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.app import create_app
from service.http.connection import CLOSE
from service.http.server import Server
from service.settings import Settings
from tests.service.conftest import NEEDED_SECONDS, let_in
from tests.service.process.test_process import BODY, running

CROWD = 50
ORIGIN = "https://a.example"


def raw(url: str, *parts: bytes) -> bytes:
    """Send bytes to a service; the bytes that come back until it closes."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=NEEDED_SECONDS) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def question(*lines: str, method: str = "POST", close: bool = True) -> bytes:
    body = json.dumps(BODY).encode()
    head = [f"{method} /similarity HTTP/1.1", "host: a", "content-type: application/json", *lines]
    head += [f"content-length: {len(body)}", *(["connection: close"] if close else [])]
    return "\r\n".join([*head, "", ""]).encode() + body


def test_answers_close_their_connections_from_the_moment_the_service_is_unready(models: Path) -> None:
    settings = Settings(models_dir=models)
    app = create_app(settings)
    server = Server(app, settings)
    asyncio.run(server.on_tick(0))
    before = server.server_state.default_headers
    assert CLOSE not in before
    server.drain()
    assert app.service.readiness()["reasons"] == ["shutting down"]
    assert CLOSE in before  # the very list that requests under way hold, and before the next tick
    asyncio.run(server.on_tick(10))  # which makes it anew
    assert server.server_state.default_headers is not before
    assert server.server_state.default_headers.count(CLOSE) == 1


def test_answered_requests_leave_nothing_for_the_garbage_collector(models: Path) -> None:
    async def left_over() -> list[object]:
        settings = Settings(models_dir=models, port=0)
        server = Server(create_app(settings), settings)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup()
        reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                writer.write(question(close=False))
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            return [each for each in gc.garbage if isinstance(each, RequestResponseCycle)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
            writer.close()
            await server.shutdown()

    assert uvloop.run(left_over()) == []


def test_a_crowd_is_accepted_in_a_few_turns(models: Path) -> None:
    async def turns_needed() -> int:
        settings = Settings(models_dir=models, port=0)
        server = Server(create_app(settings), settings)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup()
        address = server.servers[0].sockets[0].getsockname()
        with ExitStack() as crowd:
            for _ in range(CROWD):
                crowd.enter_context(socket.create_connection(address))
            turns = 0
            while len(server.server_state.connections) < CROWD and turns < 10 * CROWD:
                await asyncio.sleep(0)
                turns += 1
            server.leave(hurried=True)
            await server.shutdown()
        return turns

    # uvloop by itself takes one turn for each.
    assert uvloop.run(turns_needed()) < CROWD / 2


def test_who_has_connected_is_answered_though_the_service_stops(models: Path) -> None:
    async def answers() -> list[bytes]:
        settings = Settings(models_dir=models, port=0)
        server = Server(create_app(settings), settings)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup()
        address = server.servers[0].sockets[0].getsockname()
        with ExitStack() as stack:
            crowd = [stack.enter_context(socket.create_connection(address)) for _ in range(CROWD)]
            for connection in crowd:
                connection.sendall(question())
            server.leave()  # before the event loop had a turn to accept any of them
            await server.shutdown()
            return [connection.recv(65536) for connection in crowd]

    assert [answer[:12] for answer in uvloop.run(answers())] == [b"HTTP/1.1 200"] * CROWD


def test_an_answer_is_whole(models: Path) -> None:
    with running(models, cors_origins=ORIGIN) as (_, url):
        answer = raw(url, question(f"origin: {ORIGIN}", close=False), question())
    with running(models) as (_, url):
        plain = raw(url, question(close=False), question(f"origin: {ORIGIN}"))
    for found in (answer, plain):
        first, second = [b"HTTP/1.1 200 OK" + part for part in found.split(b"HTTP/1.1 200 OK")[1:]]
        heads = []
        for one in (first, second):
            head, body = one.split(b"\r\n\r\n")
            lines = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:]]
            headers = dict(lines)
            assert len(headers) == len([name for name, _ in lines if name != b"vary"]) + (b"vary" in headers)
            assert int(headers[b"content-length"]) == len(body)
            assert json.loads(body)["model"]
            assert {b"date", b"content-type", b"x-request-id", b"x-content-type-options", b"server-timing"} <= set(
                headers
            )
            heads.append(headers)
        assert b"connection" not in heads[0]
        assert heads[1][b"connection"] == b"close"
        assert (heads[0].get(b"access-control-allow-origin") == ORIGIN.encode()) == (found is answer)


def test_who_asks_for_the_head_gets_no_body(models: Path) -> None:
    with running(models, api_keys=",".join(map(":".join, let_in("correct horse").items()))) as (_, url):
        head, rest = raw(url, question(method="HEAD")).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 401")
    assert b"content-length: " in head
    assert rest == b""


def test_an_idle_connection_is_kept_and_half_a_head_is_not(models: Path) -> None:
    with running(models, request_timeout=2, keep_alive_seconds=1) as (_, url):
        assert raw(url) == b""  # closed once it has waited for its first request long enough
        assert raw(url, b"POST /similarity HT").startswith(b"HTTP/1.1 408")
        answered = raw(url, question(close=False))
        assert answered.startswith(b"HTTP/1.1 200")
        assert answered.count(b"HTTP/1.1") == 1


def test_a_body_that_comes_again_is_answered_the_same_whole_or_in_parts(models: Path) -> None:
    asked = question()
    with running(models) as (_, url):
        answers = [raw(url, asked) for _ in range(4)]
        answers.append(raw(url, asked[:-20], asked[-20:]))
        answers.append(raw(url, question("x-request-id: mine")))
        several = raw(url, question(close=False) * 3 + asked)
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in answers]
    assert bodies == [bodies[0]] * 6
    assert all(answer.startswith(b"HTTP/1.1 200 ") and b"server-timing: " in answer for answer in answers)
    assert b"x-request-id: mine\r\n" in answers[-1]
    assert several.count(b"HTTP/1.1 200 ") == several.count(bodies[0]) == 4
