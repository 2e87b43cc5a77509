"""A batch against a busy or slow service: on a clock that moves only when somebody waits, and against a real one."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import tenacity

from semblance import AsyncClient, Retries
from semblance.batch import job
from semblance.batch.job import Patient, run_batch
from semblance.batch.tasks import DEFAULT_COLUMNS, Options
from semblance.errors import RequestFailed, StillBusy, request_failed
from semblance.exits import exit_code
from semblance.types import Similarities
from tests.client.conftest import Run
from tests.client.test_batch import read, rows, write
from tests.service.process.test_process import running

OPTIONS = Options("similarity", DEFAULT_COLUMNS["similarity"])


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


def refusal(code: str = "overloaded", status: int = 429, retry_after: float | None = None) -> RequestFailed:
    body = json.dumps({"error": {"code": code, "message": "the wait would be more than 2 seconds"}}).encode()
    return request_failed(status, body, "r1", retry_after)


class Busy(AsyncClient):
    """Refuses the first requests, or more than some at once; rows may take time."""

    def __init__(
        self,
        inner: AsyncClient,
        *,
        moves: Clock | None = None,
        seconds_of_a_row: float = 0.0,
        at_once: int = 10**6,
        first: int = 0,
        error: Callable[[], RequestFailed] = refusal,
    ) -> None:
        self._inner = inner
        self._clock, self._seconds = moves, seconds_of_a_row
        self._at_once, self._error = at_once, error
        self._first = first  # refused whatever they are
        self._under_way = 0
        self.sizes: list[int] = []
        self.refused = 0

    async def models(self) -> Any:
        return await self._inner.models()

    async def similarity(self, pairs: Any, *, model: str | None = None, task: Any = None) -> Similarities:
        self.sizes.append(len(pairs))
        self._under_way += 1
        try:
            await asyncio.sleep(0)
            if len(self.sizes) <= self._first or self._under_way > self._at_once:
                self.refused += 1
                raise self._error()
            if self._clock is not None:
                self._clock.now += self._seconds * len(pairs)
            return await self._inner.similarity(pairs, model=model)
        finally:
            self._under_way -= 1


def answered_by(
    url: str, tmp_path: Path, clock: Clock, n: int = 600, concurrency: int = 4, patience: float = 600.0, **busy: Any
) -> tuple[Busy, list[str]]:
    """All rows of a batch are answered; the client, and what the batch said."""
    source, output = write(tmp_path / "in.jsonl", rows(n)), tmp_path / "out.jsonl"
    said: list[str] = []

    async def ask() -> Busy:
        async with AsyncClient(url) as inner:
            client = Busy(inner, **busy)
            done = await run_batch(
                client,
                source,
                output,
                OPTIONS,
                concurrency=concurrency,
                patience=patience,
                say=said.append,
                sleep=clock.sleep,
            )
            assert (done.rows, done.skipped) == (n, 0)
            return client

    client = asyncio.run(ask())
    assert [row["id"] for row in read(output)] == [row["id"] for row in rows(n)]
    return client, said


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(tenacity, "time", SimpleNamespace(monotonic=made))
    monkeypatch.setattr(job, "monotonic", made)
    return made


def test_a_service_that_is_busy_for_a_while_is_waited_for(url: str, tmp_path: Path, clock: Clock) -> None:
    client, _ = answered_by(url, tmp_path, clock, first=30, error=lambda: refusal(retry_after=2.0))
    assert client.refused > 20
    assert all(2.0 <= wait <= 2.0 + job.JITTER for wait in clock.waits)


def test_requests_grow_while_answers_are_quick(url: str, tmp_path: Path, clock: Clock) -> None:
    client, _ = answered_by(url, tmp_path, clock, 1500, concurrency=1)
    assert client.sizes[:5] == [16, 32, 64, 128, 16]  # the last of a whole chunk of the file
    assert max(client.sizes) == 256


def test_requests_shrink_to_what_a_slow_model_answers_in_seconds(url: str, tmp_path: Path, clock: Clock) -> None:
    client, _ = answered_by(url, tmp_path, clock, 100, concurrency=1, moves=clock, seconds_of_a_row=0.5)
    assert client.sizes[:3] == [16, 8, 4]
    assert set(client.sizes[2:]) == {4}


def test_a_service_that_never_answers_is_given_up_with_a_clear_message(url: str, tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(StillBusy) as caught:
        answered_by(url, tmp_path, clock, first=10**6)
    assert exit_code(caught.value) == 1
    assert str(caught.value) == (
        "the service is too busy: no request was answered within 600 seconds (the last answer was: the wait would be "
        "more than 2 seconds (overloaded, request r1)); the same command goes on from here, and --patience waits longer"
    )
    assert 500 <= clock.now - 100 <= 700
    assert json.loads((tmp_path / "out.jsonl.checkpoint.json").read_text())["rows"] == 0


def test_who_asks_for_more_patience_than_there_is_is_not_waited_for(url: str, tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(StillBusy, match="and asks to wait 3600 seconds more"):
        answered_by(url, tmp_path, clock, first=10**6, error=lambda: refusal("rate_limited", retry_after=3600.0))
    assert clock.now < 101


def test_each_request_has_the_whole_patience(clock: Clock) -> None:
    patient = Patient(10.0, lambda _: None, clock.sleep)
    refused = iter([True, False] * 3)

    async def answer() -> str:
        if next(refused):
            raise refusal(retry_after=9.0)
        return "answered"

    async def ask() -> list[str]:
        return [await patient(answer) for _ in range(3)]

    assert asyncio.run(ask()) == ["answered"] * 3
    assert clock.now >= 127


def test_a_row_that_takes_too_long_alone_is_skipped_and_others_go_together_again(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    given = rows(300)
    given[3]["a"] = "guitar guitar guitar"
    sizes: list[int] = []

    class Slow(AsyncClient):
        async def similarity(self, pairs: Any, **options: Any) -> Similarities:
            sizes.append(len(pairs))
            if any(a == given[3]["a"] for a, _ in pairs):
                raise refusal("timeout", 503, 1.0)
            return await super().similarity(pairs, **options)

    async def ask() -> Any:
        async with Slow(url) as client:
            source = write(tmp_path / "in.jsonl", given)
            return await run_batch(client, source, tmp_path / "out.jsonl", OPTIONS, concurrency=1, sleep=clock.sleep)

    assert asyncio.run(ask()).skipped == 1
    assert sizes.count(1) <= 4
    assert len(sizes) < 30


def test_models_are_waited_for_too(url: str, tmp_path: Path, clock: Clock) -> None:
    refused = iter([True, True, False])

    class Limited(AsyncClient):
        async def models(self) -> Any:
            if next(refused):
                raise refusal("rate_limited", retry_after=1.0)
            return await super().models()

    async def ask() -> Any:
        async with Limited(url) as client:
            source = write(tmp_path / "in.jsonl", rows(2))
            return await run_batch(client, source, tmp_path / "out.jsonl", OPTIONS, sleep=clock.sleep)

    assert asyncio.run(ask()).rows == 2


def test_a_client_may_leave_refusals_to_the_batch() -> None:
    asked: list[str] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(429)

    async def ask() -> None:
        retries = Retries(statuses=frozenset())
        async with AsyncClient("http://service", retries=retries, transport=httpx.MockTransport(refuse)) as client:
            await client.models()

    with pytest.raises(RequestFailed):
        asyncio.run(ask())
    assert asked == ["/models"]


def test_a_real_service_with_little_room_answers_a_whole_batch(models: Path, tmp_path: Path, semblance: Run) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3000)), tmp_path / "out.jsonl"
    with running(models, max_waiting=0, max_queue_seconds=0.0001, worker_threads=1, cache="off") as (_, url):
        found = semblance("batch", source, output, "--url", url, "--model", "pair-sick", "--concurrency", 16)
        metrics = httpx.get(f"{url}/metrics").text
    assert (found.code, found.out) == (0, f"3000 rows: {output}\n"), found.err
    assert [row["id"] for row in read(output)] == [row["id"] for row in rows(3000)]
    refused = next(line for line in metrics.splitlines() if 'total{route="/similarity",status="429"}' in line)
    assert float(refused.split()[-1]) > 0
    assert found.err == "semblance: the service is busy: waiting as it asks\n"
