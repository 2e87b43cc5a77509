"""A service in this process, reached over HTTP, and a redis-server of our own."""

import asyncio
import pty
import secrets
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from service.app import Application
from service.engine.batcher import Cost
from service.scoring.families import SiameseScorer
from service.scoring.scorer import Scorer
from service.settings import digest_of

NEEDED_SECONDS = 240.0  # at most, for what an idle machine does in one: fifteen others may want it too


async def until(true: Callable[[], bool], what: str = "it does not happen") -> None:
    """Wait for what comes true while the event loop goes on."""
    deadline = time.monotonic() + NEEDED_SECONDS
    while not true():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.005)


class NewConnections(httpx.ASGITransport):
    """Each request comes by a connection of its own: refusals of one that asks again too soon are held back."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to a request from the next port of the same address."""
        address, port = self.client
        self.client = address, port + 1
        return await super().handle_async_request(request)


class Client(httpx.AsyncClient):
    """Speaks to an application that runs in this process."""

    def __init__(self, app: Application) -> None:
        super().__init__(transport=NewConnections(app=app), base_url="http://service")
        self.app = app

    async def answer(self, path: str, **body: object) -> Any:
        """What a route answers to this body, once it is seen to be no refusal."""
        response = await self.post(path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def metric(self, name: str, **labels: str) -> float:
        """The value of one series; 0 is a value, absence an error."""
        self.app.service.telemetry.refresh()
        value = self.app.service.telemetry.registry.get_sample_value(name, labels)
        assert value is not None, f"no series {name}{labels}"
        return value

    async def scrape(self) -> str:
        """All figures as they are now; `/metrics` by itself may answer what it did a second ago."""
        self.app.service.exposition._pages.clear()
        return (await self.get("/metrics")).text


def let_in(*keys: str) -> dict[str, str]:
    """The setting that lets these keys in."""
    return {f"key-{i}": digest_of(key) for i, key in enumerate(keys)}


def expect(scorer: Scorer, seconds: float) -> None:
    """Make a model believe that each batch, and each comparison, takes so long."""
    found = [scorer.embeddings] if isinstance(scorer, SiameseScorer) else scorer.outputs.values()  # type: ignore[attr-defined]
    for vectors in found:
        vectors.batcher.cost = Cost(seconds, 0.0)
    scorer.seconds_per_pair = seconds


Serve = Callable[..., AbstractAsyncContextManager[Client]]
Ask = Callable[[str, object], httpx.Response]
ServeAside = Callable[..., AbstractContextManager[Ask]]


def free_port() -> int:
    """One that the system gives to nobody by itself: connections of other tests would take those it chooses."""
    while True:
        port = 11_000 + secrets.randbelow(20_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def open_terminal() -> tuple[int, int]:
    """Both ends of a pseudo-terminal; skips the test where the system has none to give."""
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal ({error}): mount /dev/pts")


class RedisServer:
    """A redis-server of our own on a free port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._options = options
        self._folder = folder
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + NEEDED_SECONDS
        while time.monotonic() < deadline:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.01)
        self.kill()
        raise RuntimeError("redis-server does not answer")

    def command(self) -> list[str | Path]:
        one = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder]
        return [*one, *self._options]

    def client(self) -> redis.Redis:
        return redis.Redis("127.0.0.1", self.port)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
