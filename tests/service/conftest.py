"""A service in this process, reached over HTTP; and a real redis-server, when there is one."""

import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from service.app import create_app
from service.settings import PREFIX, Settings
from tests.harness import fakes
from tests.harness.service import NEEDED_SECONDS, Ask, Client, RedisServer, Serve, ServeAside, free_port


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="module")
def no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            environment.delenv(name)
        yield


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models: cosine with a calibration, heads with ratings and labels, and an interaction model."""
    root = tmp_path_factory.mktemp("models")
    fakes.cosine_model(root / "avg-paraphrase")
    fakes.graded_model(root / "avg-sick")
    fakes.interaction_model(root / "pair-sick")
    return root


@pytest.fixture
def root(models: Path, tmp_path: Path) -> Path:
    """A copy of the models that a test may change."""
    return shutil.copytree(models, tmp_path / "models")


@pytest.fixture(scope="session")
def serve(models: Path) -> Serve:
    """`async with serve(max_pairs=2) as client:` runs the service with these settings, and all models open."""

    @asynccontextmanager
    async def run(**settings: object) -> AsyncIterator[Client]:
        app = create_app(Settings(**({"models_dir": models, "preload": ("all",)} | settings)))  # type: ignore[arg-type]
        async with app.router.lifespan_context(app), Client(app) as client:
            yield client

    return run


@pytest.fixture(scope="module")
async def lasting(serve: Serve) -> AsyncIterator[Client]:
    """One service for all tests of a module that change nothing in it: to start one takes longer than most of them."""
    async with serve() as client:
        yield client


@pytest.fixture
async def client(serve: Serve) -> AsyncIterator[Client]:
    """A service for one test alone, which changes it, or counts what it did."""
    async with serve() as client:
        yield client


@pytest.fixture(scope="session")
def serve_aside(serve: Serve) -> ServeAside:
    """`with serve_aside() as ask: ask("/similarity", body)`, the service in another thread: for tests of hypothesis."""

    @contextmanager
    def run(**settings: object) -> Iterator[Ask]:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve(**settings)) as client:
            yield lambda path, body: portal.call(partial(client.post, path, json=body))

    return run


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on the PATH: apt-get install redis-server")
    server = RedisServer(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def redis_cluster(tmp_path: Path) -> Iterator[RedisServer]:
    """One node that has all slots."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on the PATH: apt-get install redis-server")
    server = RedisServer(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with server.client() as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        deadline = time.monotonic() + NEEDED_SECONDS
        while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok" and time.monotonic() < deadline:
            time.sleep(0.01)
    yield server
    server.kill()
