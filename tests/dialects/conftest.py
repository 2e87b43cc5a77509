"""The service on a loopback port of its own, for clients that need a real URL."""

import importlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import httpx
import numpy as np
import pytest

from tests.harness.dialects import LIMITS, MAX_CHARS
from tests.harness.dialects import unit as unit_rows
from tests.harness.process import running
from tests.harness.service import Client, Serve
from tests.service.conftest import (  # noqa: F401  # fixtures
    anyio_backend,
    client,
    lasting,
    models,
    no_settings_from_outside,
    serve,
)

ALIASES = {"rerank-v3.5": "avg-paraphrase", "text-embedding-3-small": "avg-paraphrase"}


@pytest.fixture(scope="module")
def url(models: Path) -> Iterator[str]:  # noqa: F811
    """Where a process listens, for all tests of a module that ask for nothing special."""
    with running(models, model_aliases=",".join(f"{alias}={model}" for alias, model in ALIASES.items())) as (_, found):
        yield found


@pytest.fixture(scope="module")
async def limited(serve: Serve) -> AsyncIterator[Client]:  # noqa: F811
    """A client of a service with low limits, for tables of what does not fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.scoring.tokenising.MAX_TEXT_CHARS", MAX_CHARS)
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


def unit(url: str, *texts: str) -> np.ndarray:
    """Our own embeddings, divided by their lengths."""
    answer = httpx.post(f"{url}/embed", json={"sentences": texts}).raise_for_status().json()
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
