"""A batch against a busy or slow service: on a clock that moves only when somebody waits, and against a real one."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import tenacity

from semblance import AsyncClient, Retries
from semblance.batch.job import run_batch
from semblance.batch.tasks import DEFAULT_COLUMNS, BatchOptions
from semblance.errors import Overloaded
from tests.harness.requests import refusal
from tests.harness.tables import read, rows, write

OPTIONS = BatchOptions("similarity", DEFAULT_COLUMNS["similarity"])


class Clock:
    """Moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(tenacity, "time", SimpleNamespace(monotonic=made))
    return made


class Refusing(httpx.AsyncBaseTransport):
    """The real service, but for the requests that are refused."""

    def __init__(self, refuse: Callable[[httpx.Request], httpx.Response | None]) -> None:
        self._refuse = refuse
        self._http = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self._refuse(request) or await self._http.handle_async_request(request)

    async def aclose(self) -> None:
        await self._http.aclose()


def run(
    url: str, tmp_path: Path, clock: Clock, refuse: Callable[[httpx.Request], httpx.Response | None], given: Any = None
) -> Any:
    """A batch of these rows, 200 of them by default."""
    source = write(tmp_path / "in.jsonl", given or rows(200))

    async def ask() -> Any:
        options = {"retries": Retries.of_batch(600.0), "sleep": clock.sleep, "transport": Refusing(refuse)}
        async with AsyncClient(url, **options) as client:
            return await run_batch(client, source, tmp_path / "out.jsonl", OPTIONS)

    return asyncio.run(ask())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_service_that_is_busy_for_a_while_is_waited_for(url: str, tmp_path: Path, clock: Clock, method: str) -> None:
    left = [refusal(retry_after="2") for _ in range(30)]

    def refuse(request: httpx.Request) -> httpx.Response | None:
        return left.pop() if request.method == method and left else None

    done = run(url, tmp_path, clock, refuse)
    assert (done.rows, done.skipped, left) == (200, 0, [])
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == [row["id"] for row in rows(200)]
    assert len(clock.waits) == 30
    assert all(2.0 <= wait <= 2.0 + Retries().jitter for wait in clock.waits)


def test_a_service_that_never_answers_is_given_up(url: str, tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(Overloaded):
        run(url, tmp_path, clock, lambda request: refusal() if request.method == "POST" else None)
    assert not (tmp_path / "out.jsonl").exists()
    assert clock.now > 500
