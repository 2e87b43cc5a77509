import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.open_loop import (
    BARE,
    CLOSED,
    NOT_SENT,
    REFUSED,
    TIMED_OUT,
    Outcome,
    Plan,
    load,
    prepare,
    quantiles,
    schedule,
    start,
)

Reply = Callable[[int, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


async def serving(reply: Reply) -> tuple[asyncio.Server, int, list[bytes]]:
    """A server that leaves each request, counted from 0, to `reply`; and what it was asked."""
    asked: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                asked.append(head + await reader.readexactly(length))
                await reply(len(asked) - 1, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    return server, port, asked


def run(reply: Reply, **plan: Any) -> tuple[Outcome, list[bytes]]:
    """The outcome of a load on such a server."""

    async def both() -> tuple[Outcome, list[bytes]]:
        server, port, asked = await serving(reply)
        try:
            usual = {"bodies": [b"{}"], "rate": 200.0, "seconds": 0.3, "connections": 2, "arrivals": "constant"}
            return await load(Plan(port=port, **{**usual, **plan})), asked
        finally:
            server.close()

    return asyncio.run(both())


async def at_once(_: int, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)


def test_constant_arrivals_are_evenly_spaced_and_end_in_time() -> None:
    due = schedule(50.0, 2.0, "constant", 1)
    assert len(due) == 100
    np.testing.assert_allclose(np.diff(due), 0.02)
    assert due[0] == 0
    assert due[-1] < 2


def test_poisson_arrivals_have_the_rate_and_exponential_gaps() -> None:
    due = schedule(1000.0, 20.0, "poisson", 1)
    gaps = np.diff(due)
    assert due[-1] < 20
    assert (gaps > 0).all()
    assert len(due) == pytest.approx(20_000, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)


def test_a_seed_gives_the_same_schedule_and_another_another() -> None:
    assert schedule(100.0, 1.0, "poisson", 7).tolist() == schedule(100.0, 1.0, "poisson", 7).tolist()
    assert schedule(100.0, 1.0, "poisson", 7).tolist() != schedule(100.0, 1.0, "poisson", 8).tolist()


def test_quantiles_are_measured_values_in_milliseconds() -> None:
    found = quantiles(np.arange(1, 201) / 1000)
    assert (found.p50, found.p95, found.p99, found.max) == (100, 190, 198, 200)


def test_a_prepared_request_is_whole() -> None:
    plan = Plan(port=1, bodies=[b'{"a": 1}'], rate=1, seconds=1, connections=1, path="/x")
    head, body = prepare(plan)[0].split(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /x HTTP/1.1"
    assert {b"Content-Length: 8", b"Host: 127.0.0.1:1"} <= set(head.split(b"\r\n"))
    assert body == b'{"a": 1}'


@pytest.mark.parametrize("spin", [True, False])
def test_every_request_is_sent_and_bodies_take_turns(spin: bool) -> None:
    outcome, asked = run(at_once, bodies=[b"[1]", b"[2]"], spin=spin)
    assert outcome.statuses == {"200": 60}
    assert sorted(request[-3:] for request in asked) == [b"[1]"] * 30 + [b"[2]"] * 30
    assert (outcome.latency > 0).all()
    assert (outcome.lag >= 0).all()


def test_latency_counts_from_the_schedule_while_the_server_stands_still() -> None:
    released = 0.0

    async def stall(i: int, writer: asyncio.StreamWriter) -> None:
        nonlocal released
        if i == 0:
            await asyncio.sleep(0.2)
            released = time.perf_counter()
        writer.write(OK)

    began = time.perf_counter()
    outcome, _ = run(stall, connections=1, rate=100.0, seconds=0.3)
    assert outcome.waited > 0
    # Whatever was due while the only connection was taken waited for it: none can be faster than the rest of the stall.
    stalled = outcome.due < 0.1
    assert released > began
    assert (outcome.latency[stalled] >= 0.2 - outcome.due[stalled]).all()


def test_statuses_are_counted_by_the_second_their_requests_were_due_in() -> None:
    async def every_other(i: int, writer: asyncio.StreamWriter) -> None:
        writer.write(BUSY if i % 2 else CHUNKED)

    outcome, _ = run(every_other, rate=40.0, seconds=2.0, connections=1)
    assert outcome.statuses == {"200": 40, "429": 40}
    assert outcome.by_second() == [{"200": 20, "429": 20}] * 2
    assert outcome.quantiles("503") is None
    assert outcome.summary()["latency_ms"]["p50"] > 0


def test_refusals_without_the_headers_they_need_are_told_apart() -> None:
    whole = BUSY.replace(b"\r\n\r\n", b"\r\nRetry-After: 1\r\nretry-after-ms: 1000\r\n\r\n")

    async def in_turn(i: int, writer: asyncio.StreamWriter) -> None:
        writer.write((OK, whole, BUSY)[i % 3])

    outcome, _ = run(in_turn, refusals_need=("retry-after", "Retry-After-Ms"), connections=1)
    assert outcome.statuses == {"200": 20, "429": 20, BARE: 20}
    assert run(in_turn, connections=1)[0].statuses == {"200": 20, "429": 40}


def test_a_connection_the_server_closes_is_opened_again() -> None:
    async def hang_up(i: int, writer: asyncio.StreamWriter) -> None:
        if i % 10 == 3:
            writer.close()
        else:
            writer.write(LAST if i % 10 == 7 else OK)

    outcome, _ = run(hang_up, connections=1)
    assert outcome.statuses == {"200": 54, CLOSED: 6}


def test_what_is_not_answered_in_time_is_given_up() -> None:
    async def never(i: int, writer: asyncio.StreamWriter) -> None:
        if i:
            writer.write(OK)

    outcome, _ = run(never, timeout=0.2)
    assert outcome.statuses == {"200": 59, TIMED_OUT: 1}
    assert outcome.status[0] == TIMED_OUT


def test_what_finds_no_connection_in_time_is_not_sent() -> None:
    async def slowly(_: int, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(OK)

    outcome, asked = run(slowly, connections=1, patience=0.04)
    assert set(outcome.statuses) == {"200", NOT_SENT}
    assert len(asked) == outcome.statuses["200"] < 30
    assert [bool(np.isnan(sent)) for sent in outcome.sent] == [status == NOT_SENT for status in outcome.status]
    # They waited for each other, which is not the server's time.
    assert len(outcome.from_sent) == len(asked)
    answered = np.array([status == "200" for status in outcome.status])
    np.testing.assert_allclose(outcome.from_sent, (outcome.latency - outcome.sent + outcome.due)[answered])
    assert (outcome.from_sent <= outcome.latency[answered]).all()
    assert outcome.from_sent.min() >= 0.1
    assert outcome.summary()["from_sent_ms"]["p50"] >= 100


def test_while_nobody_listens_requests_are_refused() -> None:
    stopped = asyncio.Event()

    async def until_stopped(_: int, writer: asyncio.StreamWriter) -> None:
        if stopped.is_set():
            writer.close()
        else:
            writer.write(OK)

    async def both() -> Outcome:
        server, port, _ = await serving(until_stopped)

        async def stop() -> None:
            await asyncio.sleep(0.1)
            stopped.set()
            server.close()

        stopping = asyncio.create_task(stop())
        outcome = await load(Plan(port=port, bodies=[b"{}"], rate=100, seconds=0.4, connections=1, arrivals="constant"))
        await stopping
        return outcome

    outcome = asyncio.run(both())
    assert set(outcome.statuses) == {"200", CLOSED, REFUSED}
    assert len(outcome.status) == 40


def test_no_server_at_all_is_an_error() -> None:
    async def nobody() -> None:
        server, port, _ = await serving(at_once)
        server.close()
        await server.wait_closed()
        await load(Plan(port=port, bodies=[b"{}"], rate=1, seconds=1, connections=1))

    with pytest.raises(ConnectionError, match="nobody listens"):
        asyncio.run(nobody())


def test_a_process_of_its_own_reports_the_same() -> None:
    async def both() -> dict[str, Any]:
        server, port, asked = await serving(at_once)
        own: Any = {"path": "/x", "refusals_need": ("retry-after",)}
        plan = Plan(port=port, bodies=['[1, "é"]'.encode(), b"[2]"], rate=100, seconds=0.3, connections=3, **own)
        running = start(plan)
        result = await asyncio.to_thread(running.result)
        server.close()
        assert all(request.startswith(b"POST /x ") for request in asked)
        assert any('[1, "é"]'.encode() in request for request in asked)
        return result

    result = asyncio.run(both())
    assert result["statuses"] == {"200": result["requests"]}
    assert result["connections"] == 3
    assert set(result["latency_ms"]) == {"p50", "p95", "p99", "max"}


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="nobody listens"):
        start(Plan(port=1, bodies=[b"{}"], rate=1, seconds=1, connections=1)).result()
