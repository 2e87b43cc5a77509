"""Too many connections: who has to leave, and that everybody else is answered."""

import asyncio
import resource
import select
import socket
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from service.http import connection_tracker
from service.http.connection_tracker import most_connections
from service.http.listening import bind
from tests.harness.process import address_of, question, running
from tests.harness.server import serving
from tests.harness.service import NEEDED_SECONDS

pytestmark = pytest.mark.anyio
FILES = 64


def test_there_may_be_as_many_as_files_and_as_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10_000, 20_000))
    assert 8000 < most_connections(1 << 40) < 10_000
    assert most_connections(16_384 * 500) == 500
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3, 3))
    assert most_connections(1 << 40) == 1


async def test_one_address_with_idle_connections_leaves_room_for_others(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("service.http.server.most_connections", lambda _: 20)
    caplog.set_level("WARNING")
    async with serving(models) as (_, address):
        kept_in, kept_out = await asyncio.open_connection(*address)
        with ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(socket.create_connection(address, source_address=("127.0.0.2", 0)))
                await asyncio.sleep(0)
            others = [await asyncio.open_connection(*address) for _ in range(8)]
            for incoming, out in [*others, (kept_in, kept_out)]:
                out.write(question())
                assert (await incoming.readline()).startswith(b"HTTP/1.1 200")
                out.close()
    warned = [record.fields for record in caplog.records if record.name == connection_tracker.__name__]  # type: ignore[attr-defined]
    assert warned[0]["address"] == "127.0.0.2"


async def test_a_newcomer_does_not_wait_for_the_heads_of_all_who_came_from_another_address(models: Path) -> None:
    """Reading and refusing a head costs time: of each address, a few begin in a turn of the event loop."""
    theirs, bad = 60, b"GET / HTTP/1.1\r\n\r\n"
    async with serving(models) as (_, address):
        with ExitStack() as stack:
            crowd = []
            for _ in range(theirs):
                crowd.append(socket.create_connection(address, source_address=("127.0.0.2", 0)))
                stack.enter_context(crowd[-1]).sendall(bad)
            mine = stack.enter_context(socket.create_connection(address, source_address=("127.0.0.3", 0)))
            mine.sendall(bad)
            mine.setblocking(False)
            while not select.select([mine], [], [], 0)[0]:
                await asyncio.sleep(0)
            assert mine.recv(12) == b"HTTP/1.1 400"
            answered_before = len(select.select(crowd, [], [], 0)[0])
    assert answered_before < theirs / 2


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "of several workers"])
async def test_connections_of_a_proxy_do_not_wait_for_many_long_turns_of_the_event_loop(
    models: Path, shared: bool
) -> None:
    """Under load a turn takes some hundred milliseconds."""
    many, seconds = 120, 0.1
    with ExitStack() as stack:
        listening = stack.enter_context(closing(bind("127.0.0.1", 0))) if shared else None
        async with serving(models, listening) as (_, address):
            clients = [stack.enter_context(socket.create_connection(address)) for _ in range(many)]
            for client in clients:
                client.sendall(question(method="GET"))
            for _turns in range(many // 8):  # fewer begin in a turn that is short
                time.sleep(seconds)
                await asyncio.sleep(0)
                if len(select.select(clients, [], [], 0)[0]) == many:
                    break
            else:
                pytest.fail("some are not answered yet")


def test_three_hundred_idle_connections_and_few_files(models: Path) -> None:
    with running(models, files=FILES) as (_, url), ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(address_of(url), source_address=("127.0.0.2", 0)))
        for _ in range(58):
            with socket.create_connection(address_of(url), timeout=NEEDED_SECONDS) as connection:
                connection.sendall(question())
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
