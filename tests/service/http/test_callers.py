"""Callers who leave, who ask without end, who do not read: what they cost everybody else."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from core.tokenizer import Encoded
from service.app import Application
from service.engine.queue import INLINE_SECONDS
from service.http.connection import MAX_PIPELINED
from tests.harness.process import BODY, address_of, question, raw, running
from tests.harness.process import until as wait_until
from tests.harness.server import MB, Address, Gate, counted, pairs_of, post, serving
from tests.harness.service import NEEDED_SECONDS, until

pytestmark = pytest.mark.anyio


def in_flight(app: Application) -> float:
    app.service.telemetry.refresh()
    return app.service.telemetry.registry.get_sample_value("semblance_requests_in_flight") or 0.0


async def test_how_late_the_event_loop_is_shows_in_metrics(models: Path) -> None:
    async with serving(models) as (app, _):
        late = partial(app.service.telemetry.registry.get_sample_value, "semblance_event_loop_lag_seconds_sum")
        time.sleep(0.3)  # the fault
        await until(lambda: late() > 0.2, "it is seen")


@pytest.mark.parametrize("spaces", [0, 300_000], ids=["small", "large"])
async def test_who_leaves_is_dropped_from_the_queue_and_counted(models: Path, spaces: int) -> None:
    async with serving(models, worker_threads=1, cache="off") as (app, address):
        gate = Gate(app, "pair-sick")
        first_in, first_out = await asyncio.open_connection(*address)
        first_out.write(post(pairs_of("a dog")))
        await until(lambda: len(app.service.queue.admissions) == 1, "the first one runs")
        leavers = [await asyncio.open_connection(*address) for _ in range(3)]
        for (_, out), word in zip(leavers, ("a cat", "a man", "a woman"), strict=True):
            out.write(post(pairs_of(word), spaces=spaces))
        await until(lambda: len(app.service.queue.admissions) == 4, "the others wait")
        for _, out in leavers:
            out.close()
        await until(lambda: len(app.service.queue.admissions) == 1, "nobody waits behind the first one")
        await until(lambda: counted(app, 499) == 3, "they are counted")
        assert app.service.telemetry.registry.get_sample_value("semblance_dropped_total") == 3
        gate.open.set()
        assert (await first_in.readline()).startswith(b"HTTP/1.1 200")
        assert gate.ran == [1]  # nothing was run for those who left
        first_out.write(post(pairs_of("a cat")))  # which can be asked again
        await first_in.readuntil(b"HTTP/1.1 200")
        first_out.close()


async def test_who_stays_is_answered_where_others_of_the_same_pair_have_left(models: Path) -> None:
    async with serving(models, worker_threads=1) as (app, address):
        gate = Gate(app, "pair-sick")
        callers = [await asyncio.open_connection(*address) for _ in range(3)]
        for _, out in callers:
            out.write(post(pairs_of("a cat")))
            await asyncio.sleep(0.05)
        await until(lambda: in_flight(app) == 3, "all three wait")
        callers[0][1].close()
        callers[1][1].close()
        await until(lambda: counted(app, 499) == 2, "two have left")
        gate.open.set()
        assert (await callers[2][0].readline()).startswith(b"HTTP/1.1 200")
        assert gate.ran == [1, 1]  # the first one's had begun
        callers[2][1].close()


async def test_who_is_not_answered_when_the_service_stops_is_told_to_ask_again(models: Path) -> None:
    async with serving(models, worker_threads=1) as (app, address):
        gate = Gate(app, "pair-sick")
        incoming, out = await asyncio.open_connection(*address)
        out.write(post(pairs_of("a dog")))
        await until(lambda: len(app.service.queue.admissions) == 1, "it runs")
    head, _, body = (await incoming.read()).partition(b"\r\n\r\n")
    gate.open.set()
    lines = head.lower().split(b"\r\n")
    assert lines[0].startswith(b"http/1.1 503")
    assert {b"retry-after: 1", b"connection: close", b"content-type: application/json"} <= set(lines)
    assert json.loads(body)["error"]["code"] == "shutting_down"
    assert counted(app, 503) == 1
    out.close()


def test_a_few_pipelined_requests_are_answered_and_too_many_close_the_connection(url: str) -> None:
    few = raw(url, *[question(close=False)] * 10, question())
    assert few.count(b"HTTP/1.1 200") == 11
    many = raw(url, question(close=False) * 1000)
    assert 1 <= many.count(b"HTTP/1.1 200") <= MAX_PIPELINED + 10  # some are answered while others arrive
    assert many.count(b"connection: close") == 1
    assert httpx.post(f"{url}/similarity", json=BODY).status_code == 200


def test_bodies_that_wait_behind_an_answer_are_few(url: str) -> None:
    large = post({"pairs": [{"a": "a dog " * 1000, "b": "a cat"}]})
    found = raw(url, large * 10)
    assert 1 <= found.count(b"HTTP/1.1 200") == found.count(b"HTTP/1.1 ") < 10  # the last one is not waited for
    assert found.count(b"connection: close") == 1
    assert raw(url, question(close=False), question()).count(b"HTTP/1.1 200") == 2


def test_a_long_query_is_refused_and_no_cookie_is_read(url: str) -> None:
    assert httpx.get(f"{url}/health/live?{'a=&' * 1000}", headers={"cookie": 'a="' + "\\" * 50_000}).status_code == 200
    refused = httpx.get(f"{url}/health/live?{'a=&' * 1500}")
    assert refused.status_code == 431
    assert refused.json()["error"]["message"] == "path and query of more than 4096 bytes"


SEND_SECONDS = "service.http.connection.SEND_SECONDS"


def send_unread(stack: ExitStack, url: str, content: bytes) -> None:
    """Send this on a connection on which nothing is read."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(address_of(url))
    connection.settimeout(0.2)
    with suppress(OSError):  # it is not read to the end, or closed
        connection.sendall(content)


def test_requests_that_nobody_reads_the_answers_of_cost_little(models: Path) -> None:
    with running(models, patches={SEND_SECONDS: 60}) as (process, url), ExitStack() as stack:

        def peak() -> int:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024

        assert httpx.post(f"{url}/similarity", json=BODY).status_code == 200
        before = peak()
        flood = b"GET /openapi.json HTTP/1.1\r\nhost:\r\n\r\n" * 5000  # 11 MB on all connections
        for _ in range(60):
            send_unread(stack, url, flood)
        assert httpx.post(f"{url}/similarity", json=BODY, timeout=NEEDED_SECONDS).status_code == 200
        assert peak() - before < 20 * MB  # found: 3; without a limit of those that wait: 35 to 600


def test_an_answer_that_nobody_reads_gives_its_place_back(models: Path) -> None:
    limit = 5
    with (
        running(models, patches={SEND_SECONDS: 1}, max_in_flight=limit, max_sentences=4000) as (_, url),
        ExitStack() as stack,
    ):
        request = post({"sentences": [f"a dog {i}" for i in range(4000)]}, "/embed")  # answered with some 600 KB
        for _ in range(2 * limit):
            send_unread(stack, url, request * 12)
        wait_until(lambda: httpx.post(f"{url}/similarity", json=BODY).status_code == 200, "their places are given back")

        def left() -> bool:
            lines = httpx.get(f"{url}/metrics").text.splitlines()
            return 'semblance_requests_total{route="/embed",status="499"} 0.0' not in lines

        wait_until(left, "they are counted")


async def read_slowly(address: Address, piece: int, seconds: float) -> tuple[bytes, int]:
    """Read an answer of some 600 KB in pieces, for so long from its begin on; what comes then is read at once.

    Returns:
        What was read, and in how many pieces before it ended.
    """
    loop = asyncio.get_running_loop()
    answer, pauses, slowly = bytearray(), 0, float("inf")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        connection.setblocking(False)
        await loop.sock_connect(connection, address)
        asked = post({"sentences": [f"a dog {i}" for i in range(4000)]}, "/embed")
        await loop.sock_sendall(connection, asked.replace(b"host: a", b"host: a\r\nconnection: close"))
        with suppress(ConnectionError):
            while part := await loop.sock_recv(connection, piece if loop.time() < slowly else MB):
                slowly = slowly if answer else loop.time() + seconds
                answer += part
                if loop.time() < slowly:
                    await asyncio.sleep(0.1)
                    pauses += 1
    return bytes(answer), pauses


def is_whole(answer: bytes) -> bool:
    head, body = answer.split(b"\r\n\r\n", 1)
    return b"content-length: %d" % len(body) in head


async def test_a_slow_reader_gets_its_whole_answer(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SEND_SECONDS, 1.0)
    async with serving(models, max_sentences=4000) as (_, address):
        answer, pauses = await read_slowly(address, 16384, NEEDED_SECONDS)
    assert pauses > 20  # longer than who does not read at all is waited for
    assert is_whole(answer)


@pytest.mark.parametrize(("piece", "pace"), [(1, None), (8192, 10 * MB)])
async def test_who_reads_more_slowly_than_the_least_pace_is_disconnected(
    models: Path, monkeypatch: pytest.MonkeyPatch, piece: int, pace: int | None
) -> None:
    monkeypatch.setattr(SEND_SECONDS, 0.3)
    if pace is not None:
        monkeypatch.setattr("service.http.connection.MIN_PACE", pace)
    async with serving(models, max_sentences=4000) as (_, address):
        answer, _ = await read_slowly(address, piece, 3.0)
    assert not is_whole(answer)


UPGRADES = {
    b"websocket": (b"GET /health/live", b""),
    b"h2c": (b"POST /similarity", json.dumps(BODY).encode()),  # as Java's own client asks by default
}


def test_an_upgrade_is_answered_as_if_not_asked_for_and_logs_nothing(models: Path) -> None:
    with running(models) as (process, url):
        for protocol, (first, body) in UPGRADES.items():
            lines = [first + b" HTTP/1.1", b"host: a", b"upgrade: " + protocol, b"connection: upgrade"]
            asked = b"\r\n".join([*lines, b"content-length: %d" % len(body), b"", body])
            assert raw(url, asked, asked, question()).count(b"HTTP/1.1 200") == 3
        process.terminate()
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
    assert {json.loads(line)["level"] for line in errors.splitlines()} == {"info"}


def test_a_request_has_one_host(url: str) -> None:
    for version, hosts, status in (("1.1", 1, 200), ("1.1", 2, 400), ("1.0", 0, 200)):
        lines = ["host: a"] * hosts + ["connection: close", "", ""]
        answer = raw(url, "\r\n".join([f"GET /health/live HTTP/{version}", *lines]).encode())
        assert answer.startswith(b"HTTP/1.1 %d" % status)
        if status == 400:
            assert json.loads(answer.split(b"\r\n\r\n")[1])["error"]["code"] == "not_http"


async def test_bodies_that_do_not_arrive_take_nobodys_place(models: Path) -> None:
    async with serving(models, max_in_flight=4) as (app, address):
        slow = [await asyncio.open_connection(*address) for _ in range(20)]
        whole = post(BODY)
        begun = whole.index(b"\r\n\r\n") + 5  # the head and one byte
        for _, out in slow:
            out.write(whole[:begun])
            await asyncio.sleep(0.01)
        await until(lambda: in_flight(app) == len(slow), "all wait for their bodies")
        incoming, out = await asyncio.open_connection(*address)
        out.write(whole)
        assert (await incoming.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
        for _, each in slow:  # and are answered, one after another
            each.write(whole[begun:])
            await asyncio.sleep(0.02)
        for reader, _ in slow:
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
        for _, each in [*slow, (incoming, out)]:
            each.close()
            await each.wait_closed()


async def test_long_labels_are_read_beside_the_event_loop(models: Path) -> None:
    labels = [f"a man {i}" + " dog" * 1000 for i in range(100)]
    async with serving(models) as (app, address):
        scorer = app.service.registry["avg-sick"].scorer
        read: list[tuple[bool, int]] = []  # whether in the event loop, and how many characters
        tokenise = scorer.encode
        # As on a slow machine: by its own measure a fast one may read several labels within `INLINE_SECONDS`.
        scorer._cost.tokenising = INLINE_SECONDS / 100

        def noted(texts: Sequence[str]) -> list[Encoded]:
            read.append((threading.current_thread() is threading.main_thread(), sum(map(len, texts))))
            return tokenise(texts)

        scorer.encode = noted  # type: ignore[method-assign]
        incoming, out = await asyncio.open_connection(*address)
        out.write(post({"text": "a dog", "labels": labels, "model": "avg-sick"}, "/classify"))
        assert (await incoming.readline()).startswith(b"HTTP/1.1 200")
        out.close()
        assert sum(chars for _, chars in read) > 2 * sum(map(len, labels))
        assert max((chars for in_loop, chars in read if in_loop), default=0) < 1000
