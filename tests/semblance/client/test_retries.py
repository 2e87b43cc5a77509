"""Against a transport that answers as told, and a clock that only notes how long it was asked to wait."""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import tenacity

from semblance import AsyncClient, Client, Retries
from semblance.client.retries import retry_after
from semblance.errors import NoAnswer, Overloaded, RequestFailed, ServiceFailed, TimedOut
from semblance.types import Explanation
from tests.harness.requests import refusal

TOKENS = {"tokens": ["x"], "truncated": False}
ANSWER = {"model": "m", "score": 0.5, "raw_score": 0.1, "a": TOKENS, "b": TOKENS, "matrices": [], "vectors": []}
Reply = httpx.Response | Exception
Ask = Callable[..., tuple[Explanation | Exception, list[float], int]]


def answer() -> httpx.Response:
    return httpx.Response(200, content=json.dumps(ANSWER))


class Script:
    """Gives one reply after another, the last one for ever."""

    def __init__(self, replies: list[Reply]) -> None:
        self.replies = replies
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        reply = self.replies[min(self.asked, len(self.replies) - 1)]
        self.asked += 1
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


def ask_blocking(*replies: Reply, **options: Any) -> tuple[Explanation | Exception, list[float], int]:
    script, waits = Script(list(replies)), []
    transport = httpx.MockTransport(script)
    with Client("http://service", transport=transport, sleep=waits.append, **options) as client:
        try:
            return client.explain("x", "y"), waits, script.asked
        except Exception as error:
            return error, waits, script.asked


def ask_async(
    *replies: Reply, waits: list[float] | None = None, **options: Any
) -> tuple[Explanation | Exception, list[float], int]:
    script, waits = Script(list(replies)), [] if waits is None else waits

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def run() -> Explanation | Exception:
        transport = httpx.MockTransport(script)
        async with AsyncClient("http://service", transport=transport, sleep=sleep, **options) as client:
            try:
                return await client.explain("x", "y")
            except Exception as error:
                return error

    return asyncio.run(run()), waits, script.asked


both = pytest.mark.parametrize("ask", [ask_blocking, ask_async], ids=["blocking", "async"])


@both
def test_it_waits_as_long_as_it_is_asked_to(ask: Ask) -> None:
    found, waits, _ = ask(refusal(retry_after_ms="1500", retry_after="9"), refusal(503, retry_after="3"), answer())
    assert isinstance(found, Explanation)
    assert 1.5 <= waits[0] <= 1.75
    assert 3.0 <= waits[1] <= 3.25


@both
def test_unasked_it_waits_longer_from_try_to_try(ask: Ask) -> None:
    found, waits, asked = ask(refusal(502), retries=6)
    assert isinstance(found, ServiceFailed)
    assert asked == 7
    for wait, least in zip(waits, [0.5, 1, 2, 4, 8, 8], strict=True):
        assert least <= wait <= least + 0.25


@both
@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_what_may_pass_is_asked_again(ask: Ask, status: int) -> None:
    found, waits, _ = ask(refusal(status), answer())
    assert isinstance(found, Explanation)
    assert len(waits) == 1


@both
@pytest.mark.parametrize("status", [400, 401, 404, 413, 415, 422, 500])
def test_what_will_not_is_not(ask: Ask, status: int) -> None:
    found, waits, asked = ask(refusal(status, retry_after="1"))
    assert isinstance(found, RequestFailed)
    assert (waits, asked) == ([], 1)


@both
@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (httpx.ConnectError("refused"), NoAnswer),
        (httpx.RemoteProtocolError("closed"), NoAnswer),
        (httpx.ReadTimeout(""), TimedOut),
    ],
)
def test_a_connection_that_breaks_is_made_again(ask: Ask, broken: Exception, kind: type[NoAnswer]) -> None:
    assert isinstance(ask(broken, answer())[0], Explanation)
    found, waits, asked = ask(broken, retries=2)
    assert type(found) is kind
    assert "http://service" in str(found)
    assert (len(waits), asked) == (2, 3)


def test_a_batch_asks_a_busy_service_until_its_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(tenacity, "time", SimpleNamespace(monotonic=lambda: sum(waits)))  # moves when somebody waits
    patient = {"waits": waits, "retries": Retries.of_batch(600.0)}
    found, _, asked = ask_async(*[refusal(retry_after="2")] * 30, answer(), **patient)
    assert (type(found), asked) == (Explanation, 31)
    assert all(2.0 <= wait <= 2.25 for wait in waits)
    waits.clear()
    assert isinstance(ask_async(refusal(), **patient)[0], Overloaded)
    assert sum(waits) > 500
    waits.clear()
    lost: list[Reply] = [httpx.RemoteProtocolError("closed")]
    assert isinstance(ask_async(*[refusal()] * 9, *lost * 3, answer(), **patient)[0], Explanation)
    assert ask_async(refusal(), *lost, **patient)[2] == 1 + 1 + 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1 Jan 99999999999999999999 10:00:00"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:05 GMT"}, 0.0),
    ],
)
def test_what_headers_ask_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=10.0) == seconds
