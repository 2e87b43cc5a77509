"""The service on a loopback port of its own, for clients that need a real URL."""

import importlib
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import httpx
import numpy as np
import pytest
import uvicorn

from service.app import create_app
from service.http.application import Application
from service.settings import PREFIX, Settings
from tests.harness.dialects import LIMITS
from tests.harness.dialects import unit as unit_rows
from tests.harness.service import NEEDED_SECONDS, Client, Serve, free_port
from tests.service.conftest import (  # noqa: F401  # fixtures
    anyio_backend,
    client,
    lasting,
    models,
    no_settings_from_outside,
    serve,
)

ALIASES = {"rerank-v3.5": "avg-paraphrase", "text-embedding-3-small": "avg-paraphrase"}


@dataclass(frozen=True)
class Server:
    """A service that listens."""

    url: str
    app: Application


@contextmanager
def listening(folder: Path, **settings: object) -> Iterator[Server]:
    """Run the service in a thread; it is asked over TCP."""
    app = create_app(Settings(models_dir=folder, **settings))  # type: ignore[arg-type]
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + NEEDED_SECONDS
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        assert server.started, "the service does not listen"
        yield Server(f"http://127.0.0.1:{port}", app)
    finally:
        server.should_exit = True
        thread.join(NEEDED_SECONDS)


@pytest.fixture(scope="package")
def no_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="package")
def server(models: Path, no_settings: None) -> Iterator[Server]:  # noqa: F811
    """One for all tests that ask for nothing special."""
    with listening(models, model_aliases=ALIASES) as found:
        yield found


@pytest.fixture(scope="module")
async def limited(serve: Serve) -> AsyncIterator[Client]:  # noqa: F811
    """A client of a service with low limits, for tables of what does not fit."""
    async with serve(**LIMITS) as found:
        yield found


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hub's client, which refuses loopback too where an environment says that it is offline."""
    missing = "no huggingface_hub: pip install '.[clients]'"
    found: ModuleType = pytest.importorskip("huggingface_hub", reason=missing)
    monkeypatch.setattr(importlib.import_module("huggingface_hub.constants"), "HF_HUB_OFFLINE", False)
    importlib.import_module("huggingface_hub.errors")
    return found


def unit(server: Server, *texts: str) -> np.ndarray:
    """Our own embeddings, divided by their lengths."""
    answer = httpx.post(f"{server.url}/embed", json={"sentences": texts}).raise_for_status().json()
    return unit_rows(answer["embeddings"])


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing asks the network: who tries is refused, and fails the test even if it hides that."""
    outside: list[object] = []
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def refuse_outside(host: object) -> None:
        if host not in ("127.0.0.1", "::1", "localhost", None):
            outside.append(host)
            raise OSError(f"{host!r} is not loopback")

    def guarded_connect(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple):
            refuse_outside(address[0])
        connect(self, address)  # type: ignore[arg-type]

    def guarded_resolve(host: object, *arguments: object, **options: object) -> object:
        refuse_outside(host.decode() if isinstance(host, bytes) else host)
        return resolve(host, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_resolve)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in (("LANGSMITH_TRACING", "false"), ("HF_HUB_DISABLE_TELEMETRY", "1")):
        monkeypatch.setenv(name, value)
    yield
    assert outside == []
