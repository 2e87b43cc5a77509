"""Answers that never end: both clients give up, whatever part of an answer comes and however steadily."""

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from itertools import repeat
from typing import Any

import httpx
import pytest

from semblance import AsyncClient, Client
from semblance.client import clients, reading
from semblance.errors import TimedOut, UnexpectedAnswer


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_ANSWER_BYTES", 1000)
    endless = httpx.MockTransport(lambda _: httpx.Response(200, content=repeat(b"[" * 100)))
    with Client("http://service", transport=endless) as client, pytest.raises(UnexpectedAnswer, match="more than"):
        client.models()

    def drops() -> Iterator[bytes]:
        while True:
            time.sleep(0.01)
            yield b" "

    slow = httpx.MockTransport(lambda _: httpx.Response(200, content=drops()))
    with Client("http://service", retries=0, timeout=0.02, transport=slow) as client, pytest.raises(TimedOut):
        client.models()


def test_an_answer_that_is_packed_twice_is_not_unpacked() -> None:
    body = gzip.compress(gzip.compress(b" " * 10**6))
    packed = {"content-encoding": "gzip, gzip"}
    twice = httpx.MockTransport(lambda _: httpx.Response(200, headers=packed, stream=httpx.ByteStream(body)))
    with Client("http://service", transport=twice) as client, pytest.raises(UnexpectedAnswer, match="'gzip, gzip'"):
        client.models()


def test_so_is_that_of_a_client_for_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_ANSWER_BYTES", 1000)

    async def drops() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)
            yield b" " * 10

    async def ask() -> None:
        endless = httpx.MockTransport(lambda _: httpx.Response(200, content=drops()))
        async with AsyncClient("http://service", transport=endless) as client:
            await client.models()

    with pytest.raises(UnexpectedAnswer, match="more than"):
        asyncio.run(ask())


@pytest.fixture
def dripping() -> Iterator[Callable[[bytes, bytes], str]]:
    """Starts a server that answers a connection's first request with {}, and the second with drops; gives its URL."""
    ended, servers = threading.Event(), []

    def serve(server: socket.socket, begins: bytes, drop: bytes) -> None:
        with suppress(OSError), server.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            connection.recv(65536)
            connection.sendall(begins)
            while not ended.wait(0.05):
                connection.sendall(drop)

    def start(begins: bytes, drop: bytes) -> str:
        servers.append(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=serve, args=(servers[-1], begins, drop), daemon=True).start()
        return "http://127.0.0.1:{1}".format(*servers[-1].getsockname())

    yield start
    ended.set()
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("begins", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nx: ", b"a"),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n", b" "),
    ],
)
def test_a_whole_answer_is_bounded_while_its_head_comes_too(
    dripping: Callable[[bytes, bytes], str], monkeypatch: pytest.MonkeyPatch, begins: bytes, drop: bytes
) -> None:
    monkeypatch.setattr(clients, "WAITS_OF_AN_ANSWER", 2)

    async def ask(url: str) -> None:
        async with AsyncClient(url, retries=0, timeout=0.4) as client:
            with pytest.raises(UnexpectedAnswer):
                await client.health()
            with pytest.raises(TimedOut):
                await asyncio.wait_for(client.health(), 20)

    def ask_blocking(url: str) -> None:
        with Client(url, retries=0, timeout=0.4) as client:
            with pytest.raises(UnexpectedAnswer):
                client.health()
            with pytest.raises(TimedOut):
                client.health()

    asyncio.run(ask(dripping(begins, drop)))
    asking = threading.Thread(target=ask_blocking, args=(dripping(begins, drop),), daemon=True)
    with pytest.MonkeyPatch.context() as patch:
        failed: list[Any] = []
        patch.setattr(threading, "excepthook", failed.append)
        asking.start()
        asking.join(20)
    assert (asking.is_alive(), failed) == (False, [])
